// Optimizer: what all update rules share. Rules are in sgd.h, momentum_sgd.h, adam.h and adamw.h;
// rules of your own derive from Optimizer and override update_one.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "catena/array/named_arrays.h"
#include "catena/kernels/optimizer.h"
#include "catena/optimizers/arena.h"
#include "catena/optimizers/update_stage.h"

namespace catena::optimizers {

// Runs in every update before the rule, in phase kClip: weight decay, clipping (hooks.h), or
// anything of your own.
using Hook = std::function<void(UpdateContext&)>;

namespace detail {
// What everything that clips takes: ValueError, which begins with `who`, unless maxnorm > 0.
void check_maxnorm(const char* who, double maxnorm);
}  // namespace detail

// Holds the parameters of a model, laid out in arenas, with their states, each on its parameter's
// device; the parameters may be on several devices and may move with model.to_gpu(...), also after
// setup: arenas and states follow at the next call.
//
// All work is queued on the current streams of the parameters' devices; only the calls that return
// a number of the gradients wait for them. On GPUs the step count and the learning rate live on the
// device as well, so that an update can be captured into a graph: replays advance the count, and
// set_lr between replays changes what they use.
//
// Parameters of 16 bits have float32 states and a float32 master copy, which the rule updates; the
// parameter is its rounded value. Whoever writes such a parameter otherwise (loading, broadcasting)
// need not know: the next update starts from what was written. Rules of a user that override
// update_one see the 16-bit parameter itself.
class Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Takes the parameters of a model: moves them and their gradients into arenas, names them
  // ("/l1/W"), makes new states and sets t to 0. ValueError when the model has no parameters.
  void setup(Parameterized& model);
  void setup(Parameterized&& model) = delete;  // would be gone at once
  // The same for a list, which is taken as the order of declaration. Parameters keep the names that
  // they have, with a "/" in front; unnamed ones, and those whose name another one has, are named
  // by position ("/0"), or by the next free number.
  //
  // When setup fails, the optimizer is as it was; a stage that refuses the model leaves it set up.
  void setup(const Parameters& parameters);
  // Chainer's setup(model.collect_parameters()).
  void setup(const std::pair<Parameters, Arrays>& collected) { setup(collected.first); }
  bool is_set_up() const { return !layout_.empty(); }

  // In the order of model.parameters(): ascending names, or the order of the list.
  const Parameters& parameters() const { return ordered_; }
  const ArenaSet& layout() const { return layout_; }
  // Persistent arrays of the model that setup was given ("/bn1/running_mean"), in order of
  // declaration; none after setup with a list. Handed on to whoever trains over ranks: the
  // optimizer itself neither reads, moves nor saves them.
  const NamedPersistents& persistents() const { return persistents_; }
  // Number of updates since setup. With parameters on a GPU it is read from there, where graph
  // replays count it; this waits for the device.
  int64_t t() const;

  // Marks the gradients as zero, which runs no kernel: the next contribution overwrites, and what
  // is never reached is filled with zeros by the update.
  void zero_grads();
  // Adds the gradients of another replica (model.gradients(), from any device). One transfer and
  // one addition for each arena when the replica lies in arenas of the same layout, else one for
  // each parameter. ValueError, ShapeError or DtypeError naming the parameter.
  void accumulate_grads(const Arrays& gradients);
  void accumulate_grads(const Parameterized& replica) { accumulate_grads(replica.gradients()); }
  // L2 norm of all gradients together; waits for the devices.
  double compute_grads_norm();
  // Scales the gradients so that their norm is at most maxnorm; waits for the devices. The hook
  // gradient_clipping does the same without waiting. ValueError unless maxnorm > 0.
  void clip_grads(double maxnorm);
  // gradient += decay * parameter, now. The hook weight_decay does it in every update.
  void weight_decay(double decay);
  // One step: the stages in order, among them the hooks in the order they were added and the rule.
  // All parameters are updated alike: of one without elements, states and counts advance too.
  void update();

  // Learning rate ("alpha" of Adam). Setting it on a GPU is queued; during a capture it is a
  // ValueError, because replays would set it again, and the rate stays.
  double lr() const { return lr_; }
  void set_lr(double lr);
  // All numbers of the rule by name, the learning rate included, for checkpoints and reports.
  virtual std::vector<std::pair<std::string, double>> hyper_parameters() const;
  // ValueError listing the names when there is no such number.
  virtual void set_hyper_parameter(const std::string& name, double value);

  // Adds a hook; a name that exists is replaced in its place. Hooks and stages may add, replace and
  // remove hooks and stages, themselves included: it holds from the next update on.
  void add_hook(const std::string& name, Hook hook);
  // IndexError when there is none.
  void remove_hook(const std::string& name);

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

  // Prepares for cuda::Graph::capture: arenas in place, device values made (on the CPU as well,
  // where the update then reads the same values). A stage that skips updates has them made too.
  void prepare_for_capture();

  // "t", hyper-parameters and states by name ("m/l1/W"), as views where possible. load_state takes
  // the same names; IoError listing what is missing, of wrong shape or unknown. Master copies of
  // 16-bit parameters are "master/l1/W"; a state without any, of training in float32, is taken too:
  // the copies are then those of the parameters.
  NamedArrays state();
  void load_state(const std::map<std::string, Array>& state);
  // States of one parameter in the order of state_names(), as views; the master copy, if there is
  // one, is the last.
  const Arrays& state_of(const Parameter& parameter);

  // Makes arenas and states follow parameters that moved. Called by everything that needs it. When
  // it fails, for want of memory, values, states and counts are kept, and the next call tries
  // again.
  void settle_layout();

 protected:
  Optimizer(std::string lr_name, double lr);
  Optimizer(Optimizer&&) noexcept = default;

  // Rules of your own -----------------------------------------------------------------------------
  // States of one parameter: arrays on its device (scalars as 0-d arrays). By default calls the
  // form for the device, which gives zeros like the parameter for each of state_names() by default.
  virtual Arrays init_state(const Array& parameter, const Array& gradient);
  virtual Arrays init_state_cpu(const Array& parameter, const Array& gradient);
  virtual Arrays init_state_gpu(const Array& parameter, const Array& gradient);
  virtual std::vector<std::string> state_names() const { return {}; }
  // One parameter's step, in place, with its device current; also of one without elements. By
  // default calls the form for the device.
  virtual void update_one(const Array& parameter, const Array& gradient, const Arrays& states);
  virtual void update_one_cpu(const Array& parameter, const Array& gradient, const Arrays& states);
  virtual void update_one_gpu(const Array& parameter, const Array& gradient, const Arrays& states);
  // Updates done when update_one runs, this one included (the host's count; see t()).
  int64_t step() const { return t_; }

  // Rules as one kernel over an arena -------------------------------------------------------------
  // A whole arena or a range of it. Everything is 1-d, contiguous, of one length (0 when no
  // parameter has elements); dtypes as OptimizerCall says. The rule multiplies the gradient by
  // gradient_scale, then adds weight_decay * parameter.
  struct ArenaUpdate {
    const Array& parameter;
    const Array& gradient;
    const Array& master;
    const Arrays& states;
    StepValue step = {}, learning_rate = {}, gradient_scale{1};
    Array counter = {};           // see counts_updates()
    bool counts = true;           // false: a later range of this arena's update counts
    const Array* skip = nullptr;  // see skips_updates()
    double weight_decay = 0;
  };
  // True: update_arena is called once for each arena, or range of it, instead of update_one for
  // each parameter, and init_state is not used. A zero parameter with zero gradient and states as
  // they start must stay zero.
  virtual bool updates_arenas() const { return false; }
  virtual void update_arena(const ArenaUpdate& update);
  // What each element of a state of an arena begins with, in the order of state_names(); zeros by
  // default.
  virtual std::vector<double> state_starts() const;
  // True: where update.counter is defined, update_arena takes t from it and, with update.counts,
  // stores t there, as OptimizerCall::counter says, and update.step has no device value. Otherwise
  // a kernel before update_arena counts, unless the update is skipped, and update.step says t.
  virtual bool counts_updates() const { return false; }
  // True: update_arena does nothing where update.skip is not 0, and does not count then.
  virtual bool skips_updates() const { return false; }
  // DtypeError unless the rule can update parameters of this dtype.
  virtual void check_dtype(Dtype dtype) const;

  // The name of the learning rate among the hyper-parameters, and its value.
  std::string lr_name_;
  double lr_;

 private:
  friend class UpdateContext;
  friend class HookStage;
  friend class RuleStage;
  // What kernels of a step read and advance, on the arena's device: [t, 0, learning rate].
  struct DeviceValues {
    Array block, counter, step, learning_rate;  // views of the block
  };

  // What follows from where the parameters are. It is made aside and then taken as a whole, so that
  // nothing is lost when memory runs out in between.
  struct Groups {
    ArenaSet layout;
    std::vector<DeviceValues> values;  // one for each arena
    std::vector<Arrays> states;        // by position in declaration
  };

  void setup_named(const ArenaSet::Named& named, const Parameters& ordered,
                   NamedPersistents persistents);
  void make_groups(Groups& groups, int64_t t, const std::vector<Arrays>& old_states);
  Arrays make_states(const ParameterArena& arena, const ParameterArena::Slot& slot,
                     const Arrays* old_states);
  void take(Groups&& groups, int64_t t);
  bool counts_on(Device device) const;
  DeviceValues make_device_values(Device device, int64_t t) const;
  void add_device_values();
  void require_setup(const char* who) const;
  static std::vector<std::shared_ptr<UpdateStage>> built_in_stages();
  // A copy, because what stages and hooks do may change the list.
  using Stages = boost::container::small_vector<std::shared_ptr<UpdateStage>, 6>;
  Stages current_stages() const { return Stages(stages_.begin(), stages_.end()); }
  void insert_stage(const std::shared_ptr<UpdateStage>& stage);
  std::string master_name(size_t index) const;
  bool has_masters(const std::map<std::string, Array>& state) const;
  std::string problems_of(const NamedArrays& own, const std::map<std::string, Array>& given) const;
  bool reduces_gradients() const;
  void finish_gradients(const char* who);
  void finish_gradients(UpdateContext& update);
  Array gradient_factor(Device device) const;
  void warn_without_gradients();
  void run_hooks(UpdateContext& update);
  void run_rule(UpdateContext& update);
  void update_whole(size_t group, UpdateContext& update);
  void update_range(size_t group, const ArenaRange& range, UpdateContext& update, bool counts);
  void update_each(const ParameterArena& arena);

  ArenaSet layout_;
  Parameters ordered_;
  NamedPersistents persistents_;
  std::vector<size_t> positions_;     // of ordered_ in declaration
  std::vector<DeviceValues> values_;  // one for each arena
  std::vector<Arrays> states_;        // by position in declaration
  std::vector<std::pair<std::string, std::shared_ptr<const Hook>>> hooks_;
  bool warned_ = false;  // see warn_without_gradients
  // A hook has let UpdateContext::apply() multiply the gradients in memory by their factors.
  bool unscaled_in_memory_ = false;
  int64_t t_ = 0;
  bool device_values_everywhere_ = false;
  std::vector<std::shared_ptr<UpdateStage>> stages_;
};

}  // namespace catena::optimizers

namespace catena {
using optimizers::Optimizer;
}  // namespace catena
