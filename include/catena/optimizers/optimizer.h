// Optimizer: what users of all update rules call. Rules are in sgd.h, momentum_sgd.h, adam.h,
// adamw.h, lars.h and others; what a rule of your own overrides is in update_rule.h, what an update
// is made of in update_stage.h.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "catena/array/named_arrays.h"
#include "catena/optimizers/arena.h"
#include "catena/optimizers/arena_segments.h"
#include "catena/optimizers/groups.h"
#include "catena/optimizers/sharded_array.h"
#include "catena/optimizers/step_numbers.h"
#include "catena/optimizers/update_rule.h"
#include "catena/optimizers/update_stage.h"

namespace catena::optimizers {

// Runs in every update before the rule, in phase kClip: weight decay, clipping (hooks.h), or
// anything of your own. What it refers to must live as long as the optimizer.
using Hook = std::function<void(UpdateContext&)>;

namespace detail {
// What everything that clips takes: ValueError, which begins with `who`, unless maxnorm > 0.
void check_maxnorm(const char* who, double maxnorm);
}  // namespace detail

// Holds the parameters of a model, laid out in arenas, with their states, each on its parameter's
// device. The parameters may be on several devices and may move with model.to_gpu(...), also after
// setup: settle_layout() says when arenas and states follow.
//
// All work is queued on the current streams of the parameters' devices; only the calls that return
// a number of the gradients wait for them. On GPUs the step count, the learning rate and the
// numbers of groups live on the device as well, so that an update can be captured into a graph:
// replays advance the count, and set_lr and set_group between replays change what they use.
//
// Parameters of 16 bits have float32 states and a float32 master copy, which the rule updates,
// unless the rule says otherwise (UpdateRule::state_format); the parameter is its rounded value.
// Whoever writes such a parameter otherwise (loading, broadcasting) need not know: the next update
// starts from what was written.
class Optimizer : public UpdateRule {
 public:
  ~Optimizer() override;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Takes the parameters of a model: moves them and their gradients into arenas, names them
  // ("/l1/W"), makes new states and sets t to 0. ValueError when the model has no parameters.
  //
  // Called again, after a layer was added to the model or replaced: parameters that the optimizer
  // held already keep their states, and t goes on counting; a line of the log names those that are
  // new, whose states begin at their start values. The count is one for all: bias corrections
  // (Adam) do not begin anew. With a model of other parameters everything begins anew.
  void setup(Parameterized& model);
  void setup(Parameterized&& model) = delete;  // would be gone at once
  // The same for a list, which is taken as the order of declaration. Parameters keep the names that
  // they have, with a "/" in front; unnamed ones, and those whose name another one has, are named
  // by position ("/0"), or by the next free number.
  //
  // When setup fails, the optimizer is as it was; a stage that refuses the model leaves it set up.
  // Where processes share the parameters' values (Processes::share), a setup that runs out of
  // memory may lose them: make the model anew.
  void setup(const Parameters& parameters);
  // Chainer's setup(model.collect_parameters()).
  void setup(const std::pair<Parameters, Arrays>& collected) { setup(collected.first); }
  bool is_set_up() const { return !layout_.empty(); }
  // Where the memory of arenas comes from; null: the pools of the devices. ValueError after setup.
  void set_memory(ArenaMemoryPtr memory);
  bool has_memory() const { return memory_ != nullptr; }

  // Groups: parameters whose names fit one of the patterns ("*/b", "/body/*") learn at another
  // rate, decay otherwise or are frozen. Of several groups that a parameter fits the last one
  // counts. All groups are updated by the kernels that update the rest, and clipping is by one norm
  // over all. Before or after setup, and for every later setup. ValueError when the name is taken
  // or has a
  // '/', when nothing fits (at setup at the latest), and for rules over arenas that do not read
  // groups.
  void add_group(const std::string& name, const std::vector<std::string>& patterns,
                 const GroupOptions& options);
  // Changes a group's numbers, also between replays of a captured update. ValueError listing the
  // groups when there is none of this name, and during a capture.
  void set_group(const std::string& name, const GroupOptions& options);
  const std::vector<ParameterGroup>& groups() const { return groups_.all(); }

  // Freezing: updates leave these parameters and their states alone, backward passes leave their
  // gradients out, and norms do not count them; groups go on deciding the rest. By the path of a
  // parameter or a part of the model ("/body", "/body/l1/W", "*/b"), or by the object. Of a
  // parameter that a group freezes unfreeze changes nothing. A later setup forgets those that it
  // does not have; files do not have any of it. Replays of a captured update follow where
  // parameters were frozen, or there were groups, when it was captured; but gradients that the
  // captured backward pass left out stay zero: capture anew after unfreezing. All ranks freeze the
  // same. ValueError before setup, when nothing is there or the optimizer does not hold it, during
  // a capture, and for rules over arenas that do not read groups.
  void freeze(const std::string& path);
  void freeze(const Parameterized& part);
  void freeze(const Parameter& parameter);
  void unfreeze(const std::string& path);
  void unfreeze(const Parameterized& part);
  void unfreeze(const Parameter& parameter);
  // Whether updates leave a parameter alone, by freeze or by its group.
  bool is_frozen(const Parameter& parameter) const;
  // By freeze, whatever its group says.
  bool is_frozen_alone(const Parameter& parameter) const;

  // In the order of model.parameters(): ascending names, or the order of the list.
  const Parameters& parameters() const { return ordered_; }
  const ArenaSet& layout() const { return layout_; }
  // One of its arenas, for stages that change what it keeps of data and gradients. States are the
  // optimizer's: Processes::share says what to keep of them.
  ParameterArena& arena(size_t index) { return layout_.arena(index); }
  // Persistent arrays of the model that setup was given ("/bn1/avg_mean"), in order of
  // declaration; none after setup with a list. Handed on to whoever trains over ranks: the
  // optimizer itself neither reads, moves nor saves them.
  const NamedPersistents& persistents() const { return persistents_; }
  // Number of updates since setup. With parameters on a GPU it is read from there, where graph
  // replays count it; this waits for the device.
  int64_t t() const;
  // The same, 0-d float64 on the device of an arena; what a captured update reads there advances.
  Array t_on_device(size_t arena) const;

  // Marks the gradients as zero, which runs no kernel: the next contribution overwrites, and what
  // is never reached is filled with zeros by the update.
  void zero_grads();
  // Adds the gradients of another replica (model.gradients(), from any device). One transfer and
  // one addition for each arena when the replica is in arenas of the same layout, else one for each
  // parameter. ValueError, ShapeError or DtypeError naming the parameter.
  void accumulate_grads(const Arrays& gradients);
  void accumulate_grads(const Parameterized& replica) { accumulate_grads(replica.gradients()); }
  // Of what a decay takes a share: the parameter or its sign.
  enum class Decay : uint8_t { kValue, kSign };
  // What UpdateContext does to the gradients of one arena, on its device. Their sum of squares, 0-d
  // float64, in which frozen parameters do not count, others as much as Processes::weight_of says.
  // gradient += rate * the parameter or its sign, where those in memory are the ones wanted divided
  // by `factor`, a 0-d float64 or undefined; groups decay by their own factors. A note that factors
  // of stages (UpdateStage::gradient_factor) were multiplied into the gradients.
  Array sum_of_squares(size_t arena) const;
  void add_decay(size_t arena, double rate, const Array& factor, Decay of) const;
  void note_unscaled() { unscaled_in_memory_ = true; }
  // L2 norm of all gradients together; waits for the devices.
  double compute_grads_norm();
  // Scales the gradients so that their norm is at most maxnorm; waits for the devices. The hook
  // gradient_clipping does the same without waiting. ValueError unless maxnorm > 0.
  void clip_grads(double maxnorm);
  // gradient += decay * parameter, now. The hook weight_decay does it in every update.
  void weight_decay(double decay);
  // One step: the stages in order, among them the hooks in the order they were added and the rule.
  // All parameters are updated alike: of one without elements, states and counts advance too.
  // After setup with a model a GradientError where the last backward pass has also given a gradient
  // to a parameter that no model lists and no optimizer holds (require_no_lost_gradients).
  void update();

  // Learning rate ("alpha" of Adam); inside of update_one that of the parameter's group. Setting it
  // on a GPU is queued; during a capture it is a ValueError, because replays would set it again,
  // and the rate stays.
  double lr() const { return lr_ * rate_factor_; }
  void set_lr(double lr);
  // All numbers of the rule by name, the learning rate and those of groups ("no decay/rate")
  // included, for checkpoints and reports.
  virtual std::vector<std::pair<std::string, double>> hyper_parameters() const;
  // ValueError listing the names when there is no such number.
  virtual void set_hyper_parameter(const std::string& name, double value);

  // Adds a hook; a name that exists is replaced in its place. Hooks and stages may add, replace and
  // remove hooks and stages, themselves included: it holds from the next update on.
  void add_hook(const std::string& name, Hook hook);
  // IndexError when there is none.
  void remove_hook(const std::string& name);
  bool has_hooks() const { return !hooks_.empty(); }
  // What the last update noted (UpdateContext::note_change), in its order.
  const std::vector<GradientChange>& gradient_changes() const { return changes_; }

  // What backward is to begin from: the loss, times the loss scale if there is one.
  Variable scaled(const Variable& loss) const;
  // Adds a stage to every update, behind those of its phase, and returns it. ValueError if it is
  // there already, or skips updates and the rule cannot.
  template <class Stage>
  std::shared_ptr<Stage> add_stage(std::shared_ptr<Stage> stage) {
    insert_stage(stage);
    return stage;
  }
  // Whether it was there.
  bool remove_stage(const UpdateStage& stage);
  // In the order in which they run, "hooks" and "rule" included.
  const std::vector<std::shared_ptr<UpdateStage>>& stages() const { return stages_; }
  // Makes arrays the sums over the processes of all stages, in place (Processes::sum).
  void sum_over_processes(const Arrays& arrays, Processes::Sum of) const;

  // Prepares for cuda::Graph::capture: arenas in place, device values made (on the CPU as well,
  // where the update then reads the same values). A stage that skips updates has them made too.
  void prepare_for_capture();

  // "t", hyper-parameters and states by name ("m/l1/W"), as views where possible; master copies of
  // 16-bit parameters are "master/l1/W". Where states are spread over processes they are gathered:
  // all processes call it.
  NamedArrays state();
  // Takes the same names, also of training with another number of processes; IoError listing what
  // is missing, of wrong shape or unknown. A state without master copies, of training in float32,
  // is taken too: the copies are then those of the parameters. So is one with master copies where
  // the rule keeps none, and float32 states are rounded to bfloat16 or widened from it.
  void load_state(const std::map<std::string, Array>& state);
  // The rule's states, master copies and what stages have of parameters
  // (UpdateStage::parameter_states), as far as this process keeps them.
  ShardedArrays local_state();
  // The rest of state(), which every process has: "t", hyper-parameters and arrays of stages.
  NamedArrays common_state();
  // Takes that rest, after local_state() was written to through its views: both together are
  // load_state() for readers of parts. IoError listing what is missing, of wrong shape or unknown.
  void load_common_state(const std::map<std::string, Array>& state);
  // Whether this process keeps a part of the states only.
  bool is_sharded() const;
  // Whether the rule lets processes keep parts of the states: it updates arenas.
  bool can_be_sharded() const { return updates_arenas(); }
  // States of one parameter in the order of state_names(), as views; the master copy, if there is
  // one, is the last. ValueError where the states are spread over processes.
  const Arrays& state_of(const Parameter& parameter);

  // Lays parameters that have left their arenas (model.to(device), another optimizer's setup) out
  // anew, and takes the states along. Nothing else moves arenas, but setup, zero_grads, update and
  // the calls that read gradients or prepare a capture, which begin with it. Processes that train
  // together must all do so: it is collective where something has moved. When it fails, for want of
  // memory, values, states and counts are kept, and the next call tries again.
  void settle_layout();

 protected:
  Optimizer(std::string lr_name, double lr);
  Optimizer(Optimizer&&) noexcept = default;

  // Updates done when update_one runs, this one included (the host's count; see t()). In a captured
  // update ValueError: replays would find the count of the capture.
  int64_t step() const;

  // The name of the learning rate among the hyper-parameters, and its value.
  std::string lr_name_;
  double lr_;

 private:
  class HookStage;
  class RuleStage;
  // What follows from where the parameters are. It is made aside and then taken as a whole, so that
  // nothing is lost when memory runs out in between.
  struct Placed {
    ArenaSet layout;
    StepNumbers numbers;
    std::vector<ArenaSegments> segments;  // one for each arena; none where uses_segments() is false
    std::vector<Arrays> states;           // by position in declaration; empty where they are spread
  };

  // Setup (optimizer.cpp)
  void setup_named(const ArenaSet::Named& named, const Parameters& ordered,
                   NamedPersistents persistents);
  Processes::Share share() const;
  ArenaCuts cuts() const;
  // What parameters that are laid out anew keep, all elements of it.
  struct Kept {
    Parameters parameters;       // none: everything begins anew
    std::vector<Arrays> states;  // of each of them
    std::vector<std::pair<const ParameterBlocks*, std::vector<Arrays>>>
        of_stages;  // one array each
    int64_t t = 0;
  };
  Kept kept_for(const Parameters& parameters);
  Kept kept_of_all() const;
  void report_changes(const Kept& kept) const;
  Placed placed_anew(const ArenaSet::Named& named, const NamedPersistents& persistents,
                     const Kept& kept);
  void place(Placed& placed, const Kept& kept);
  Arrays make_states(const ParameterArena& arena, const ParameterArena::Slot& slot,
                     const Arrays* old_states);
  void take(Placed&& placed);
  static void make_blocks(ParameterBlocks& own, const ArenaSet& layout, const Kept& kept);
  bool counts_on(Device device) const;
  void bring_numbers();
  void require_setup(const char* who) const;
  bool is_capturing() const;

  // Groups (optimizer_groups.cpp)
  bool uses_segments() const { return groups_.any() || needs_norms(); }
  ArenaSegments make_segments(const ArenaSet& layout, const ParameterArena& arena) const;
  void require_differences(const char* who) const;
  void use_groups();
  Parameters parameters_at(const char* who, const std::string& path) const;
  Parameters parameters_in(const char* who, const Parameters& given) const;
  void set_frozen(const char* who, const Parameters& parameters, bool frozen);

  // Stages and hooks (optimizer_update.cpp)
  static std::vector<std::shared_ptr<UpdateStage>> built_in_stages();
  // A copy, because what stages and hooks do may change the list.
  using Stages = UpdateContext::Stages;
  Stages current_stages() const { return Stages(stages_.begin(), stages_.end()); }
  void insert_stage(const std::shared_ptr<UpdateStage>& stage);

  // States by name (optimizer_state.cpp)
  std::string master_state() const;
  std::string state_name(size_t k, size_t count, size_t parameter) const;
  NamedArrays numbers() const;
  NamedArrays stage_states() const;
  std::vector<ParameterBlocks*> blocks_of_stages() const;
  std::vector<Arrays> whole_states() const;
  std::vector<Arrays> whole_arrays(const ParameterBlocks& own) const;
  Array whole_block(const Block& block, int64_t size) const;
  void load(ShardedArrays own, const std::map<std::string, Array>& given, const char* problem);

  // Updates (optimizer_gradients.cpp, optimizer_update.cpp)
  bool reduces_gradients() const;
  void finish_gradients(const char* who);
  void finish_gradients(UpdateContext& update);
  void require_gradients_to_move() const;
  Array gradient_factor(Device device) const;
  void warn_without_gradients();
  void run_hooks(UpdateContext& update);
  bool only_rule_reads_gradients() const;
  void wait_for_gradients(size_t arena, const UpdateContext& update) const;
  void run_stages(std::span<const std::shared_ptr<UpdateStage>> stages, UpdateContext& update);
  void run_rule(UpdateContext& update);
  void begin_update(size_t arena, const UpdateContext& update);
  void update_whole(size_t arena, const UpdateContext& update, const Array* squares);
  void update_range(size_t arena, const ArenaRange& range, int64_t first,
                    const UpdateContext& update, const Array* squares, bool counts);
  void update_each(size_t arena);
  void require_numbers_in_replays() const;
  void update_parameter(const ParameterArena::Slot& slot, const Arrays& states);
  // A call and what it points to.
  struct RuleCall {
    OptimizerCall call{};
    RuleSegments segments{};
  };
  void fill(RuleCall& rule_call, size_t arena, const ArenaRange& range, int64_t first,
            const UpdateContext& update) const;

  // Norms (optimizer_norms.cpp)
  // How much the slots of an arena count in norms over several processes.
  struct Counted {
    Array weights;           // float64 (slots); undefined: all are 1
    ArenaSegments segments;  // for them, where the arena has none
  };
  void use_counts();
  Counted counted_of(const ParameterArena& arena) const;
  Array squares_of(size_t arena) const;
  Array step_squares_of(size_t arena, const UpdateContext& update);
  Arrays squares_of_all(const UpdateContext& update);
  void sum_over_parts(Arrays& squares) const;

  ArenaSet layout_;
  Parameters ordered_;
  NamedPersistents persistents_;
  std::vector<size_t> positions_;  // of ordered_ in declaration
  StepNumbers numbers_;
  std::vector<ArenaSegments> segments_;  // one for each arena
  std::vector<Counted> counted_;         // one for each arena
  std::vector<Arrays> states_;           // by position in declaration
  ParameterGroups groups_;
  // How often the rate, a group or what is frozen has changed: for graphs, which may live longer.
  std::shared_ptr<int64_t> changes_of_numbers_ = std::make_shared<int64_t>(0);
  double rate_factor_ = 1;  // of the group whose parameter update_one works on
  ArenaMemoryPtr memory_;
  std::vector<std::pair<std::string, std::shared_ptr<const Hook>>> hooks_;
  std::vector<GradientChange> changes_;
  bool warned_ = false;  // see warn_without_gradients
  // A hook has let UpdateContext::apply() multiply the gradients in memory by their factors.
  bool unscaled_in_memory_ = false;
  bool counts_everywhere_ = false;  // numbers_ are on every device
  bool has_model_ = false;          // setup was given a model, not a list
  std::vector<std::shared_ptr<UpdateStage>> stages_;
};

}  // namespace catena::optimizers

namespace catena {
using optimizers::Optimizer;
}  // namespace catena
