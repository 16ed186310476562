// What an update is made of: a list of stages, each of which may be added to, and the gradients as
// the stages of one update see them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "catena/array/named_arrays.h"
#include "catena/autograd/variable.h"
#include "catena/optimizers/arena.h"
#include "catena/optimizers/sharded_array.h"

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

// One stage. Everything is queued on the current streams of the arenas' devices; nothing may wait
// for a device, so that updates can be captured into a graph.
class UpdateStage {
 public:
  virtual ~UpdateStage() = default;
  virtual UpdatePhase phase() const = 0;
  virtual const char* name() const = 0;

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

  // The optimizer is about to be set up with these parameters: share() and cuts() are asked next.
  virtual void before_setup(Optimizer&, const Parameters&) {}
  // The setup that before_setup() announced has thrown, and the optimizer is as it was.
  virtual void setup_failed(Optimizer&) {}
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
  // `total`, a 0-d float64 on a device, is the sum of squares of this process's gradients. A stage
  // of processes that hold different parameters makes it the sum over all of them, in place.
  virtual void finish_norm(const Array& total) { (void)total; }
  // Of a rule with norms, such as LARS and LAMB: squares[i], float64 (2, slots), has the sums of
  // squares of each parameter of arena i, of its values, and of its gradient or step. A stage of
  // processes that have slices of parameters makes them the sums over all slices, in place.
  virtual void finish_squares(Optimizer& optimizer, const Arrays& squares) {
    (void)optimizer, (void)squares;
  }
  // `flag`, a 0-d float64 on a device, differs from 0 if this process has found gradients that are
  // not finite. A stage of processes that hold different gradients makes it the sum over all of
  // them, in place, so that all skip the update or none.
  virtual void finish_found(const Array& flag) { (void)flag; }

  // Part `index` of the `count` parts of equal size into which every arena is cut.
  struct Share {
    int64_t index = 0, count = 1;
  };
  // Which part of master copies and states this process keeps, and therefore of the parameters it
  // updates. Asked in setup.
  virtual Share share() const { return {}; }
  // How arenas are cut; the first stage that cuts decides. Asked in setup.
  virtual ArenaCuts cuts() const { return {}; }
  // This process's part, 1-d, beside those of the others, in the order of their index. Collective.
  // Undefined where the stage shares nothing.
  virtual Array gather_parts(const Array& part) {
    (void)part;
    return {};
  }
  // The same where each process keeps a part of the arenas' states (share): `sums` is of the
  // elements of those parts, and becomes the sum over all processes, in place. False where the
  // stage shares nothing. Called in phase kRule by all processes.
  virtual bool sum_parts(const Array& sums) {
    (void)sums;
    return false;
  }
  // Parameters have left their arenas (to(device), another optimizer's setup) and are about to be
  // laid out anew. Stages of several processes agree on it here, and make whole what arenas keep a
  // part of (ParameterArena::keep_data, keep_gradient). Collective.
  virtual void before_layout_moves(Optimizer&) {}

  // Arrays that the optimizer saves with its states, by names "stage/number", as views that may be
  // written to; state_was_loaded follows.
  virtual NamedArrays state() { return {}; }
  // Those of state() that belong to a parameter each, of its shape and by the same names. What is
  // spread over processes, such as the parameters of a tensor-parallel layer, is saved and loaded
  // with the parameter's other states; the rest of state() is what all processes have in common.
  virtual ShardedArrays parameter_states() { return {}; }
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
  explicit UpdateContext(Optimizer& optimizer) : optimizer_(optimizer) {}
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

 private:
  friend class Optimizer;
  const Array* factor(size_t arena) const { return scale_.empty() ? nullptr : &scale_[arena]; }
  const Array* skip(size_t arena) const { return skip_.empty() ? nullptr : &skip_[arena]; }

  Optimizer& optimizer_;
  std::vector<std::shared_ptr<UpdateStage>> waiting_;  // whose before_rule_reads is called
  double decay_ = 0;
  std::vector<GradientChange> changes_;
  Arrays scale_;    // one 0-d float64 for each arena; empty: one
  Arrays skip_;     // the same; empty: never
  Arrays squares_;  // OptimizerCall::squares of each arena; empty: the rule needs none
  std::vector<std::vector<ElementRange>> ranges_;  // by arena; empty: all of all
};

}  // namespace catena::optimizers
