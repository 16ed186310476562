// Stages of an update, to which users may add, and the gradients as the stages of one update see
// them.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "catena/array/named_arrays.h"
#include "catena/autograd/variable.h"
#include "catena/optimizers/arena.h"
#include "catena/optimizers/processes.h"

namespace catena::optimizers {

class Optimizer;
class UpdateContext;

// The order of stages in an update. Stages of one phase run in the order they were added.
enum class UpdatePhase : uint8_t {
  kReduce,   // gradients become those of all replicas: data-parallel training
  kUnscale,  // factors of gradients, and whether they are finite: loss scales
  kClip,     // hooks: clipping, decay
  kRule,     // parameters and states change
  kGather    // parameters become those of all replicas: sharded training
};

// What a stage keeps for each element of the parameters, beside the states of the rule.
struct ParameterBlocks {
  struct OfArena {
    Block block;                              // over ParameterArena::covers()
    int64_t size;                             // of the whole arena, in elements
    std::vector<ParameterArena::Slot> slots;  // where each parameter lies in the arena
  };
  std::string name;                  // "average": files have "average/l1/W"
  std::vector<OfArena> arenas = {};  // in the optimizer's order
};

// One stage. Everything is queued on the current streams of the arenas' devices; nothing may wait
// for a device, so that updates can be captured into a graph.
class UpdateStage {
 public:
  virtual ~UpdateStage() = default;
  virtual UpdatePhase phase() const = 0;
  virtual const char* name() const = 0;

  // What it was made with, by names: processes that train together must have the same.
  virtual std::vector<std::pair<std::string, double>> settings() const { return {}; }

  // The stage's part of an update. Those of phase kReduce also run before a call of the optimizer
  // that reads gradients, such as compute_grads_norm, and must then not work twice.
  virtual void run(UpdateContext& update) = 0;
  // Whether run() reads gradients, or changes what the rule makes of them. If no stage but the rule
  // does, run() need not wait for gradients that are on their way: the rule calls
  // before_rule_reads() for each arena.
  virtual bool reads_gradients(const Optimizer&) const { return true; }
  // The current stream of arena `index` is about to read its gradients, for which run() did not
  // wait (UpdateContext::waits_by_arena).
  virtual void before_rule_reads(size_t index) { (void)index; }
  // All stages have run.
  virtual void after_update(Optimizer&) {}

  // The optimizer is about to be set up with these parameters: its processes are asked next
  // how they share it.
  virtual void before_setup(Optimizer&, const Parameters&) {}
  // The new arenas have their parameters, and no memory yet: processes compare their models here,
  // before they exchange values. The persistent arrays are those of the model. Also called when an
  // optimizer that is set up gets the stage.
  virtual void before_values_move(const ArenaSet&, const NamedPersistents&) {}
  // The optimizer was set up with a model, or has got the stage when it was.
  virtual void after_setup(Optimizer&) {}
  // Device values that a captured update needs are to be made now. Parameters' values may be
  // freed until they are next used.
  virtual void prepare_for_capture(Optimizer&) {}
  // What backward is to begin from instead of the loss.
  virtual Variable scaled(const Variable& loss) { return loss; }
  // zero_grads was called.
  virtual void discard(Optimizer&) {}
  // Gradients of other replicas are about to be added; GradientError when it is too late for that.
  virtual void before_accumulate(Optimizer&) {}
  // What the gradients in memory are to be multiplied by, a 0-d float64 on the device; undefined
  // for one.
  virtual Array gradient_factor(Device) { return {}; }
  // Whether updates may be skipped by UpdateContext::skip_if: the rule must be able to.
  virtual bool skips_updates() const { return false; }
  // What processes do together for the stage; null: nothing. The same object each time.
  virtual Processes* processes() { return nullptr; }
  // Parameters have left their arenas (to(device), another optimizer's setup) and are about to be
  // laid out anew. Stages of several processes agree on it here, and make whole what arenas keep a
  // part of (ParameterArena::keep_own_data, keep_own_gradient). Collective.
  virtual void before_layout_moves(Optimizer&) {}

  // Arrays of no parameter that the optimizer saves with its states, by names "stage/number", as
  // views that may be written to; state_was_loaded follows.
  virtual NamedArrays state() { return {}; }
  // Those of each parameter, which the optimizer makes from the values of the parameters when they
  // and the stage have been set up, and moves, spreads over processes, saves and loads with the
  // rule's states. The same object each time; null: none.
  virtual ParameterBlocks* parameter_states() { return nullptr; }
  virtual void state_was_loaded() {}
};

// A change that an update makes to gradients, in a word or two, with its numbers.
struct GradientChange {
  std::string what;
  std::vector<double> numbers;
  bool operator==(const GradientChange&) const = default;
};

// The gradients of a running update. Factors, decay and clipping are remembered and folded into the
// rule's own kernel where they can be.
class UpdateContext {
 public:
  using Stages = boost::container::small_vector<std::shared_ptr<UpdateStage>, 6>;
  // Of `waiting` before_rule_reads is called for each arena, if there are any.
  explicit UpdateContext(Optimizer& optimizer, Stages waiting = {})
      : optimizer_(optimizer), waiting_(std::move(waiting)) {}
  Optimizer& optimizer() { return optimizer_; }
  // Whether gradients may be on their way until the rule reads them.
  bool waits_by_arena() const { return !waiting_.empty(); }
  // gradient += rate * parameter.
  void add_weight_decay(double rate);
  // gradient += rate * sign(parameter), after apply().
  void add_sign_decay(double rate);
  // Scales all gradients together to at most this L2 norm. Nothing waits for a device. A norm that
  // is not a number leaves them as they are. ValueError unless maxnorm > 0.
  void clip_norm(double maxnorm);
  // Multiplies the gradients of arena i by factors[i], each a 0-d float64 on the arena's device.
  void scale_gradients(const Arrays& factors);
  // Arena i is not updated, and its update not counted, unless flags[i], a 0-d float64 on its
  // device, is 0 when the rule runs.
  void skip_if(Arrays flags) { skip_ = std::move(flags); }
  // The flag of arena i; undefined: its update is not skipped.
  Array skip_flag(size_t arena) const { return skip_.empty() ? Array() : skip_[arena]; }
  // How many updates were done before this one, a 0-d float64 on the device of arena i, which
  // replays of a captured update find advanced. Before phase kRule.
  Array updates(size_t arena) const;
  // Only these ranges of an arena are updated, in this order; by default all that this process
  // keeps the states of. ValueError for rules of a user that update parameter by parameter.
  void update_only(size_t arena, std::vector<ElementRange> ranges);
  // Carries out what is remembered, so that the gradient arrays are what the rule would see: for
  // hooks that read or write them. 16-bit gradients are rounded then, and those of float16 that
  // were scaled may become zero.
  void apply();
  // For hooks that change gradients otherwise than by add_weight_decay, add_sign_decay and
  // clip_norm, which note themselves: they do so in this update, with these numbers. Ranks that
  // train together compare the notes after the first update and every 64th; where each rank updates
  // a part of the parameters, nothing else shows that a hook is missing on one of them. ValueError
  // for a text that is empty or has tabs or line ends.
  void note_change(GradientChange change);

  // What is remembered, for the rule's kernel: decay, the factor of an arena's gradients and the
  // flag that skips it, null where there is none, the ranges that are updated, none for all, and
  // notes.
  double decay() const { return decay_; }
  const Array* factor(size_t arena) const { return scale_.empty() ? nullptr : &scale_[arena]; }
  const Array* skip(size_t arena) const { return skip_.empty() ? nullptr : &skip_[arena]; }
  const std::vector<ElementRange>& ranges(size_t arena) const;
  const std::vector<GradientChange>& changes() const { return changes_; }
  // Tells the stages that the rule is about to read the gradients of an arena.
  void before_rule_reads(size_t arena) const {
    for (const auto& stage : waiting_) stage->before_rule_reads(arena);
  }

 private:
  Optimizer& optimizer_;
  Stages waiting_;  // whose before_rule_reads is called
  double decay_ = 0;
  std::vector<GradientChange> changes_;
  Arrays scale_;                                   // one 0-d float64 for each arena; empty: one
  Arrays skip_;                                    // the same; empty: never
  std::vector<std::vector<ElementRange>> ranges_;  // by arena; empty: all of all
};

}  // namespace catena::optimizers
