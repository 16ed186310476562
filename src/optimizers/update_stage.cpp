// Updates: the list of stages, the two that every optimizer has, and what they remember of the
// gradients.
#include "catena/optimizers/update_stage.h"

#include <algorithm>

#include "catena/core/log.h"
#include "catena/core/profiler_range.h"
#include "catena/optimizers/optimizer.h"
#include "core/ranks_in_use.h"
#include "optimizers/arena_sums.h"

namespace catena::optimizers {

// The gradients of an update ----------------------------------------------------------------------

void UpdateContext::clip_norm(double maxnorm) {
  detail::check_maxnorm("UpdateContext::clip_norm", maxnorm);
  if (decay_ != 0) apply();
  const std::vector<ParameterArena>& arenas = optimizer_.layout().arenas();
  Array total;
  for (size_t i = 0; i < arenas.size(); ++i) {
    if (arenas[i].size() == 0) continue;
    Array part = sum_of_squares(arenas[i].gradient()).astype(Dtype::kFloat64, false);
    if (const Array* pending = factor(i)) part = multiply(part, square(*pending));
    total = total.defined() ? add(total, part.to(total.device())) : part;
  }
  if (!total.defined()) return;
  // maxnorm / norm, at most one; the norm of zero gradients gives infinity, fmin skips NaN.
  const Array clipping = fmin(multiply(rsqrt(total), maxnorm), 1.0);
  Arrays factors;
  for (const ParameterArena& arena : arenas) factors.push_back(clipping.to(arena.device()));
  scale_gradients(factors);
}

void UpdateContext::scale_gradients(const Arrays& factors) {
  if (decay_ != 0) apply();
  if (scale_.empty()) {
    scale_ = factors;
    return;
  }
  for (size_t i = 0; i < factors.size(); ++i) scale_[i] = multiply(scale_[i], factors[i]);
}

void UpdateContext::update_only(size_t arena, std::vector<ElementRange> ranges) {
  CATENA_CHECK(ValueError, optimizer_.updates_arenas(),
               "UpdateContext::update_only: this rule updates parameter by parameter; only rules "
               "that update arenas can be restricted to ranges");
  CATENA_CHECK(ValueError, arena < optimizer_.layout().arenas().size() && !ranges.empty(),
               "UpdateContext::update_only: expected one of ", optimizer_.layout().arenas().size(),
               " arenas and at least one range, got arena ", arena, " and ", ranges.size(),
               " ranges; {0, 0} updates nothing");
  ranges_.resize(optimizer_.layout().arenas().size());
  ranges_[arena] = std::move(ranges);
}

void UpdateContext::apply() {
  const std::vector<ParameterArena>& arenas = optimizer_.layout().arenas();
  for (size_t i = 0; i < arenas.size(); ++i) {
    const Array& g = arenas[i].gradient();
    if (const Array* pending = factor(i)) {
      multiply(g, pending->astype(compute_dtype(g.dtype()), false), g);  // rounded once, into g
      optimizer_.unscaled_in_memory_ = true;
    }
    if (decay_ != 0) add_decayed(arenas[i], decay_);
  }
  scale_.clear();
  decay_ = 0;
}

// The stages of every optimizer -------------------------------------------------------------------

class HookStage : public UpdateStage {
 public:
  UpdatePhase phase() const override { return UpdatePhase::kClip; }
  const char* name() const override { return "hooks"; }
  void run(UpdateContext& update) override { update.optimizer().run_hooks(update); }
};

class RuleStage : public UpdateStage {
 public:
  UpdatePhase phase() const override { return UpdatePhase::kRule; }
  const char* name() const override { return "rule"; }
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
  if (is_set_up()) {  // what fails here leaves the stage out
    stage->after_setup(*this);
    if (stage->skips_updates()) add_device_values();
  }
  const auto behind = std::find_if(stages_.begin(), stages_.end(), [&](const auto& other) {
    return other->phase() > stage->phase();
  });
  stages_.insert(behind, stage);
}

bool Optimizer::remove_stage(const UpdateStage& stage) {
  return std::erase_if(stages_, [&](const auto& other) { return other.get() == &stage; }) > 0;
}

bool Optimizer::reduces_gradients() const {
  return !stages_.empty() && stages_.front()->phase() == UpdatePhase::kReduce;
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
      "NoBackprop, from constants only, or by another model? (said once)");
}

void Optimizer::finish_gradients(UpdateContext& update) {
  settle_layout();
  for (const auto& stage : current_stages()) {
    if (stage->phase() != UpdatePhase::kReduce) break;
    stage->run(update);
  }
  layout_.settle_gradients();
}

void Optimizer::finish_gradients(const char* who) {
  require_setup(who);
  UpdateContext update(*this);
  finish_gradients(update);
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
  require_setup("update");
  warn_without_gradients();
  UpdateContext update(*this);
  const Stages stages = current_stages();
  finish_gradients(update);
  for (const auto& stage : stages)
    if (stage->phase() != UpdatePhase::kReduce) stage->run(update);
  for (const auto& stage : stages) stage->after_update(*this);
  if (t_ == 1) warn_of_ranks_apart(stages);
}

void Optimizer::run_hooks(UpdateContext& update) {
  boost::container::small_vector<std::shared_ptr<const Hook>, 4> hooks;  // they may change the list
  for (const auto& [name, hook] : hooks_) hooks.push_back(hook);
  for (const auto& hook : hooks) (*hook)(update);
}

void Optimizer::run_rule(UpdateContext& update) {
  if (t_++ == 0) warn_about_forgotten_parameters("update");
  if (!updates_arenas()) update.apply();
  for (size_t i = 0; i < values_.size(); ++i) update_whole(i, update);
}

void Optimizer::update_whole(size_t index, UpdateContext& update) {
  const ParameterArena& arena = layout_.arenas()[index];
  const DeviceScope scope(arena.device());
  const DeviceValues& values = values_[index];
  if (values.block.defined() && !(updates_arenas() && counts_updates())) {
    if (const Array* skip = update.skip(index))
      add(values.step, equal(*skip, 0.0), values.step);
    else
      add(values.step, 1.0, values.step);
  }
  if (!updates_arenas()) return update_each(arena);
  if (update.ranges_.empty() || update.ranges_[index].empty()) {
    update_range(index, arena.whole(), update, true);
  } else {
    const std::vector<ElementRange>& ranges = update.ranges_[index];
    for (const ElementRange& range : ranges)
      update_range(index, arena.range(range), update, &range == &ranges.back());
  }
  arena.data().note_write();
}

void Optimizer::update_range(size_t index, const ArenaRange& range, UpdateContext& context,
                             bool counts) {
  const DeviceValues& values = values_[index];
  ArenaUpdate update{.parameter = range.data,
                     .gradient = range.gradient,
                     .master = range.master,
                     .states = range.states,
                     .step = {static_cast<double>(t_)},
                     .learning_rate = {lr_},
                     .counts = counts,
                     .skip = context.skip(index),
                     .weight_decay = context.decay_};
  if (values.block.defined()) {
    update.learning_rate.device_value = &values.learning_rate;
    if (counts_updates())
      update.counter = values.counter;
    else
      update.step.device_value = &values.step;
  }
  if (const Array* factor = context.factor(index)) update.gradient_scale.device_value = factor;
  update_arena(update);
}

void Optimizer::update_each(const ParameterArena& arena) {
  for (const ParameterArena::Slot& slot : arena.slots()) {
    update_one(slot.parameter.data(), slot.parameter.grad(), states_[size_t(slot.index)]);
    slot.parameter.data().note_write();
  }
}

}  // namespace catena::optimizers
