// Updates: the list of stages, the two that every optimizer has, hooks, and the rule.
#include <algorithm>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/core/graph.h"
#include "catena/core/log.h"
#include "catena/core/profiler_range.h"
#include "catena/core/trace.h"
#include "catena/optimizers/optimizer.h"
#include "core/ranks_in_use.h"

namespace catena::optimizers {

// The stages of every optimizer -------------------------------------------------------------------

class Optimizer::HookStage : public UpdateStage {
 public:
  UpdatePhase phase() const override { return UpdatePhase::kClip; }
  const char* name() const override { return "hooks"; }
  bool reads_gradients(const Optimizer& optimizer) const override { return optimizer.has_hooks(); }
  void run(UpdateContext& update) override { update.optimizer().run_hooks(update); }
};

class Optimizer::RuleStage : public UpdateStage {
 public:
  UpdatePhase phase() const override { return UpdatePhase::kRule; }
  const char* name() const override { return "rule"; }
  bool reads_gradients(const Optimizer&) const override { return false; }  // not before it says so
  void run(UpdateContext& update) override { update.optimizer().run_rule(update); }
};

std::vector<std::shared_ptr<UpdateStage>> Optimizer::built_in_stages() {
  static const std::vector<std::shared_ptr<UpdateStage>> stages{std::make_shared<HookStage>(),
                                                                std::make_shared<RuleStage>()};
  return stages;
}

// The list ----------------------------------------------------------------------------------------

Variable Optimizer::scaled(const Variable& loss) const {
  Variable result = loss;
  for (const auto& stage : stages_) result = stage->scaled(result);
  return result;
}

void Optimizer::insert_stage(const std::shared_ptr<UpdateStage>& stage) {
  CATENA_CHECK(ValueError, stage != nullptr, "add_stage: the stage is null");
  CATENA_CHECK(ValueError, std::find(stages_.begin(), stages_.end(), stage) == stages_.end(),
               "add_stage: the stage '", stage->name(), "' is there already");
  CATENA_CHECK(
      ValueError, skips_updates() || !stage->skips_updates(), "add_stage: the stage '",
      stage->name(),
      "' skips updates by a value on the device, which this rule does not read; use a rule "
      "of catena/optimizers, or override update_arena and skips_updates");
  const Processes* processes = stage->processes();
  CATENA_CHECK(ValueError, !is_set_up() || processes == nullptr || processes->share().count == 1,
               "add_stage: the stage '", stage->name(),
               "' spreads the states over processes; add it before setup");
  if (is_set_up()) {  // what fails here leaves the stage out
    stage->before_values_move(layout_, persistents_);
    stage->after_setup(*this);
    if (stage->skips_updates()) bring_numbers();
    if (ParameterBlocks* own = stage->parameter_states()) make_blocks(*own, layout_, {});
  }
  const auto behind = std::find_if(stages_.begin(), stages_.end(), [&](const auto& other) {
    return other->phase() > stage->phase();
  });
  stages_.insert(behind, stage);
  if (processes != nullptr) use_counts();
}

bool Optimizer::remove_stage(const UpdateStage& stage) {
  bool has_processes = false;
  const auto is_it = [&](const auto& other) {
    if (other.get() != &stage) return false;
    has_processes = other->processes() != nullptr;
    return true;
  };
  const bool was_there = std::erase_if(stages_, is_it) > 0;
  if (has_processes) use_counts();
  return was_there;
}

// Hooks -------------------------------------------------------------------------------------------

void Optimizer::add_hook(const std::string& name, Hook hook) {
  CATENA_CHECK(ValueError, bool(hook), "add_hook: hook '", name, "' is empty");
  const auto found =
      std::find_if(hooks_.begin(), hooks_.end(), [&](const auto& h) { return h.first == name; });
  auto shared = std::make_shared<const Hook>(std::move(hook));
  if (found != hooks_.end())
    found->second = std::move(shared);
  else
    hooks_.emplace_back(name, std::move(shared));
}

void Optimizer::remove_hook(const std::string& name) {
  const auto found =
      std::find_if(hooks_.begin(), hooks_.end(), [&](const auto& h) { return h.first == name; });
  CATENA_CHECK(IndexError, found != hooks_.end(), "remove_hook: there is no hook '", name, "'");
  hooks_.erase(found);
}

// Update ------------------------------------------------------------------------------------------

// A loss that was computed without a graph (NoBackprop, constants) has an empty backward pass,
// which would go unnoticed as steps that change nothing.
void Optimizer::warn_without_gradients() {
  if (warned_ || reduces_gradients()) return;
  const auto reached = [](const Parameter& p) { return p.state()->has_gradient(); };
  if (std::any_of(ordered_.begin(), ordered_.end(), reached)) return;
  warned_ = true;
  logging::warning(
      "update: no parameter got a gradient since zero_grads; was the loss computed under "
      "NoBackprop, from constants only, or by another model? (shown once)");
}

namespace {

// A job of several ranks in which nothing was exchanged before the first update trains each rank
// apart; once a process.
template <class Stages>
void warn_of_ranks_apart(const Stages& stages) {
  RanksInUse& ranks = ranks_in_use();
  if (ranks.communicators == 0 || ranks.exchanges) return;
  for (const auto& stage : stages)
    if (stage->phase() == UpdatePhase::kReduce) return;
  if (ranks.warned.exchange(true)) return;
  logging::warning(
      "Optimizer::update: the job has several ranks, but no gradients were exchanged between them: "
      "each rank trains a model of its own. To train one model, use "
      "create_multi_node_optimizer(optimizer, comm)");
}

}  // namespace

void Optimizer::update() {
  const ProfilerRange range("Optimizer::update");
  tracing::describe("Optimizer::update", tracing::Category::kUpdate);
  require_setup("update");
  CATENA_CHECK(ValueError, share().count > 1 || !is_sharded(),
               "update: the states are spread over processes, but the stage that spread them is "
               "gone, so that this process would update a part; keep the multi-node optimizer, or "
               "call setup(model) to go on alone");
  warn_without_gradients();
  if (has_model_) require_no_lost_gradients("update", ordered_);
  const Stages stages = current_stages();
  UpdateContext update(*this, only_rule_reads_gradients() ? stages : Stages());
  finish_gradients(update);
  if (updates_arenas() && !is_capturing()) layout_.adopt_low();
  run_stages({stages.data(), stages.size()}, update);
  changes_ = update.changes();
  for (const auto& stage : stages) stage->after_update(*this);
  if (numbers_.on_host() == 1) warn_of_ranks_apart(stages);
}

// Who catches what a stage throws finds the gradients there, as without the rule.
void Optimizer::run_stages(std::span<const std::shared_ptr<UpdateStage>> stages,
                           UpdateContext& update) {
  try {
    for (const auto& stage : stages)
      if (stage->phase() != UpdatePhase::kReduce) stage->run(update);
  } catch (...) {
    for (size_t i = 0; i < numbers_.size(); ++i) wait_for_gradients(i, update);
    throw;
  }
}

// Rules with norms read all gradients before they update the first arena.
bool Optimizer::only_rule_reads_gradients() const {
  if (!updates_arenas() || needs_norms()) return false;
  return std::none_of(stages_.begin(), stages_.end(),
                      [this](const auto& stage) { return stage->reads_gradients(*this); });
}

void Optimizer::run_hooks(UpdateContext& update) {
  boost::container::small_vector<std::shared_ptr<const Hook>, 4> hooks;  // they may change the list
  for (const auto& [name, hook] : hooks_) hooks.push_back(hook);
  for (const auto& hook : hooks) (*hook)(update);
}

void Optimizer::run_rule(UpdateContext& update) {
  if (numbers_.on_host() == 0) warn_about_forgotten_parameters("update");
  numbers_.count_on_host();
  if (!updates_arenas() && is_capturing()) require_numbers_in_replays();
  // Norms are those of the gradients that the rule sees, but for a factor.
  if (!updates_arenas() || (needs_norms() && update.decay() != 0)) update.apply();
  for (size_t i = 0; i < numbers_.size(); ++i) begin_update(i, update);
  Arrays squares;
  if (updates_arenas() && needs_norms()) squares = squares_of_all(update);
  for (size_t i = 0; i < numbers_.size(); ++i) {  // the order in which backward passes fill arenas
    wait_for_gradients(i, update);
    update_whole(i, update, squares.empty() ? nullptr : &squares[i]);
  }
}

// Gradients that were cleared meanwhile are zeros behind what was on its way.
void Optimizer::wait_for_gradients(size_t index, const UpdateContext& update) const {
  if (!update.waits_by_arena()) return;
  update.before_rule_reads(index);
  layout_.arenas()[index].settle_gradients();
}

namespace {

// What the host must know of an update that graph replays make: the parameters were written, and
// with them the 16-bit copies, unless the captured step has written a parameter after the update.
void count_replays(const ParameterArena& arena) {
  for (const ParameterArena::Slot& slot : arena.slots()) slot.parameter.state()->use_in_graph();
  struct Replays {
    ParameterArena arena;
    bool launched = false, writes_low = false;
  };
  const auto replays = std::make_shared<Replays>(Replays{arena});
  cuda::add_launch_hook(
      [replays] {
        if (std::exchange(replays->launched, true)) return;
        replays->writes_low = replays->arena.is_low_current();
      },
      [replays] {
        replays->arena.note_write();
        if (replays->writes_low) replays->arena.mark_low_current();
      });
}

}  // namespace

// What the rule finds done: the update is counted, and copies of 16 bits are those of the values.
void Optimizer::begin_update(size_t index, const UpdateContext& update) {
  const ParameterArena& arena = layout_.arenas()[index];
  const DeviceScope scope(arena.device());
  if (arena.device().is_cuda() && cuda::is_capturing(arena.device())) count_replays(arena);
  if (numbers_.of(index).is_here() && !(updates_arenas() && counts_updates()))
    numbers_.count(index, update.skip(index));
  if (updates_arenas()) arena.refresh_low();
}

void Optimizer::update_whole(size_t index, const UpdateContext& update, const Array* squares) {
  const ParameterArena& arena = layout_.arenas()[index];
  const DeviceScope scope(arena.device());
  if (!updates_arenas()) return update_each(index);
  const std::vector<ElementRange>& ranges = update.ranges(index);
  if (ranges.empty())
    update_range(index, arena.covered(), arena.covers().begin, update, squares, true);
  for (const ElementRange& range : ranges)
    update_range(index, arena.range(range), range.begin, update, squares, &range == &ranges.back());
  arena.note_write();
  arena.mark_low_current();
}

void Optimizer::update_range(size_t index, const ArenaRange& range, int64_t first,
                             const UpdateContext& update, const Array* squares, bool counts) {
  RuleCall rule_call;
  fill(rule_call, index, range, first, update);
  rule_call.call.counts = counts;
  rule_call.call.squares = squares;
  update_arena(rule_call.call);
}

void Optimizer::fill(RuleCall& rule_call, size_t index, const ArenaRange& range, int64_t first,
                     const UpdateContext& context) const {
  const StepNumbers::OfArena& numbers = numbers_.of(index);
  OptimizerCall& call = rule_call.call;
  call.parameter = &range.data;
  call.gradient = &range.gradient;
  if (range.master.defined()) call.master = &range.master;
  if (range.low.defined()) call.low = &range.low;
  for (size_t k = 0; k < range.states.size(); ++k) call.states[k] = &range.states[k];
  call.learning_rate.value = lr_;
  call.step.value = static_cast<double>(numbers_.on_host());
  call.skip = context.skip(index);
  call.weight_decay = context.decay();
  call.gradient_scale.device_value = context.factor(index);
  if (numbers.is_here()) {
    call.learning_rate.device_value = &numbers.learning_rate;
    if (counts_updates())
      call.counter = &numbers.counter;
    else
      call.step.device_value = &numbers.step;
  }
  if (!uses_segments()) return;
  rule_call.segments = segments_[index].view();
  call.segments = &rule_call.segments;
  call.first = first;
}

// update_one has worked with numbers of the host, which replays do not read again.
void Optimizer::require_numbers_in_replays() const {
  cuda::add_launch_hook([now = changes_of_numbers_, captured = *changes_of_numbers_] {
    CATENA_CHECK(ValueError, *now == captured,
                 "Graph::launch: the rate, a group or what is frozen has changed since the update "
                 "was captured, and update_one of its rule goes on with what it was then; capture "
                 "the step anew");
  });
}

void Optimizer::update_each(size_t index) {
  struct Rate {  // what lr() is inside of update_one
    double& factor;
    ~Rate() { factor = 1; }
  } rate{rate_factor_};
  for (const ParameterArena::Slot& slot : layout_.arenas()[index].slots()) {
    const GroupOptions options =
        groups_.options_of(layout_.name(size_t(slot.index)), slot.parameter);
    if (options.frozen) continue;
    rate.factor = options.rate;
    update_parameter(slot, states_[size_t(slot.index)]);
  }
}

// By update_one; of a 16-bit parameter through its master copy, unless somebody else has written
// the parameter since.
void Optimizer::update_parameter(const ParameterArena::Slot& slot, const Arrays& states) {
  const Array& p = slot.parameter.data();
  if (!state_format().has_master(p.dtype())) {
    update_one(p, slot.parameter.grad(), states);
  } else {
    const Array& master = states.back();
    const Array is_same = equal(master.astype(p.dtype()), p);
    master.assign(where(is_same, master, p.astype(Dtype::kFloat32)));
    const Arrays own(states.begin(), states.end() - 1);
    update_one(master, slot.parameter.grad().astype(Dtype::kFloat32), own);
    p.assign(master);
  }
  p.note_write();
}

}  // namespace catena::optimizers
