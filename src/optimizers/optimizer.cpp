#include "catena/optimizers/optimizer.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/core/graph.h"
#include "catena/core/log.h"
#include "catena/core/profiler_range.h"
#include "catena/kernels/reduce.h"

namespace catena::optimizers {
namespace {

// Sum of squares of a whole arena as a 0-d array, accumulated in float32 or float64.
Array sum_of_squares(const Array& flat) {
  const Dtype dtype = flat.dtype() == Dtype::kFloat64 ? Dtype::kFloat64 : Dtype::kFloat32;
  Array result = Array::uninitialized({1}, dtype, flat.device());
  kernels::reduce(flat.device(), ReduceCall{ReduceOp::kSumOfSquares, &flat, &result, 1});
  return result.reshape({});
}

void add_decayed(const ParameterArena& arena, double rate) {
  add(arena.gradient(), multiply(arena.data(), rate), arena.gradient());
}

void check_rate(const std::string& name, double rate) {
  CATENA_CHECK(ValueError, std::isfinite(rate) && rate >= 0, "optimizer: the learning rate ", name,
               " is ", rate, ", expected a finite number of at least 0");
}

}  // namespace

void detail::check_maxnorm(const char* who, double maxnorm) {
  CATENA_CHECK(ValueError, maxnorm > 0, who, ": expected a norm above 0, got ", maxnorm);
}

Optimizer::Optimizer(std::string lr_name, double lr) : lr_name_(std::move(lr_name)), lr_(lr) {
  check_rate(lr_name_, lr);
}
Optimizer::~Optimizer() = default;

// Setup -------------------------------------------------------------------------------------------

void Optimizer::setup(Parameterized& model) {
  ArenaSet::Named named = model.named_parameters();
  for (auto& entry : named) entry.first.insert(0, 1, '/');
  NamedPersistents persistents = model.named_persistents();
  for (auto& entry : persistents) entry.first.insert(0, 1, '/');
  ordered_ = model.parameters();
  setup_named(named, std::move(persistents));
}

void Optimizer::setup(const Parameters& parameters) {
  ArenaSet::Named named;
  std::unordered_set<std::string> taken;
  for (const Parameter& p : parameters) {
    CATENA_CHECK(ValueError, p.defined(), "setup: parameter ", named.size(),
                 " of the list is undefined");
    std::string name = p.name();
    if (name.empty() || !taken.insert(name).second) name = message("/", named.size());
    taken.insert(name);
    named.emplace_back(std::move(name), p);
  }
  ordered_ = parameters;
  setup_named(named, {});
}

void Optimizer::setup_named(const ArenaSet::Named& named, NamedPersistents persistents) {
  for (const auto& [name, p] : named) check_dtype(p.dtype());
  layout_ = ArenaSet(named);
  persistents_ = std::move(persistents);
  find_positions();
  warn_about_forgotten_parameters("setup");
  t_ = 0;
  states_.clear();
  make_groups({});
  if (source_) source_->after_setup(*this);
}

void Optimizer::find_positions() {
  std::unordered_map<const ParameterState*, size_t> position;
  for (const Parameter& p : layout_.parameters()) position.emplace(p.state(), position.size());
  positions_.clear();
  for (const Parameter& p : ordered_) positions_.push_back(position.at(p.state()));
}

void Optimizer::make_groups(const std::vector<Arrays>& old_states) {
  groups_.clear();
  states_.assign(layout_.parameters().size(), {});
  for (const ParameterArena& arena : layout_.arenas()) {
    Group& group = groups_.emplace_back();
    if (updates_arenas()) {
      for (size_t k = 0; k < state_names().size(); ++k)
        group.states.push_back(zeros_like(arena.data()));
    }
    DeviceScope scope(arena.device());
    for (const ParameterArena::Slot& slot : arena.slots()) {
      const auto index = static_cast<size_t>(slot.index);
      Arrays& states = states_[index];
      for (const Array& flat : group.states) states.push_back(arena.slice(flat, slot));
      if (old_states.empty()) {
        if (!updates_arenas()) states = init_state(slot.parameter.data(), slot.parameter.grad());
      } else if (updates_arenas()) {
        for (size_t k = 0; k < states.size(); ++k) states[k].assign(old_states[index][k]);
      } else {
        for (const Array& old : old_states[index]) states.push_back(old.to(arena.device()));
      }
    }
    if (device_values_everywhere_ || arena.device().is_cuda())
      make_device_values(group, arena.device());
  }
}

void Optimizer::make_device_values(Group& group, Device device) {
  DeviceValues& values = group.values;
  values.block = zeros({3}, {Dtype::kFloat64, device});
  values.counter = values.block(Slice(0, 2));
  values.step = values.block[0];
  values.learning_rate = values.block[2];
  values.step.fill(static_cast<double>(t_));
  values.learning_rate.fill(lr_);
}

void Optimizer::settle_layout() {
  if (layout_.in_place()) return;
  t_ = t();
  const std::vector<Arrays> old_states = std::move(states_);
  layout_.rebuild();
  make_groups(old_states);
}

void Optimizer::prepare_for_capture() {
  require_setup("prepare_for_capture");
  settle_layout();
  device_values_everywhere_ = true;
  for (size_t i = 0; i < groups_.size(); ++i) {
    if (!groups_[i].values.block.defined())
      make_device_values(groups_[i], layout_.arenas()[i].device());
  }
}

void Optimizer::require_setup(const char* who) const {
  CATENA_CHECK(ValueError, is_set_up(), "Optimizer::", who,
               ": the optimizer has no parameters yet; call setup(model) first");
}

int64_t Optimizer::t() const {
  for (size_t i = 0; i < groups_.size(); ++i) {
    const ParameterArena& arena = layout_.arenas()[i];
    if (arena.device().is_cuda())
      return static_cast<int64_t>(groups_[i].values.step.item<double>());
  }
  return t_;
}

void Optimizer::set_lr(double lr) {
  if (lr == lr_) return;
  check_rate(lr_name_, lr);
  lr_ = lr;
  for (const Group& group : groups_) {
    if (!group.values.block.defined()) continue;
    CATENA_CHECK(
        ValueError, !cuda::is_capturing(group.values.block.device()),
        "set_lr: called while a graph is captured, so that every replay would set the rate to ", lr,
        "; set it before the capture or between replays");
    group.values.learning_rate.fill(lr);
  }
}

// Gradients ---------------------------------------------------------------------------------------

void Optimizer::zero_grads() {
  require_setup("zero_grads");
  if (source_) source_->discard(*this);
  for (const Parameter& p : layout_.parameters()) p.zero_grad();
}

void Optimizer::finish_gradients(const char* who) {
  require_setup(who);
  settle_layout();
  if (source_) source_->finish(*this);
  layout_.settle_gradients();
}

void Optimizer::accumulate_grads(const Arrays& gradients) {
  require_setup("accumulate_grads");
  CATENA_CHECK(ValueError, gradients.size() == ordered_.size(),
               "accumulate_grads: the optimizer holds ", ordered_.size(), " parameters, got ",
               gradients.size(), " gradients");
  for (size_t i = 0; i < ordered_.size(); ++i) {
    CATENA_CHECK(ShapeError, !gradients[i].defined() || gradients[i].shape() == ordered_[i].shape(),
                 "accumulate_grads: parameter '", ordered_[i].name(), "' has shape ",
                 ordered_[i].shape(), ", gradient ", i, " has ", gradients[i].shape(),
                 "; are they of a copy of this model?");
  }
  settle_layout();
  if (source_) source_->before_accumulate(*this);
  Arrays by_index(layout_.parameters().size());
  for (size_t i = 0; i < ordered_.size(); ++i) by_index[positions_[i]] = gradients[i];
  for (const ParameterArena& arena : layout_.arenas()) {
    const auto is_stale = [](const ParameterArena::Slot& s) {
      return s.parameter.state()->is_stale();
    };
    if (const Array block = common_block(arena, by_index); block.defined()) {
      if (std::all_of(arena.slots().begin(), arena.slots().end(), is_stale)) {
        arena.gradient().assign(block);
      } else {
        arena.settle_gradients();
        add(arena.gradient(), block.to(arena.device()), arena.gradient());
      }
      for (const ParameterArena::Slot& slot : arena.slots()) slot.parameter.state()->mark_written();
      continue;
    }
    for (const ParameterArena::Slot& slot : arena.slots())
      slot.parameter.accumulate_grad(by_index[size_t(slot.index)]);
  }
}

double Optimizer::compute_grads_norm() {
  finish_gradients("compute_grads_norm");
  Arrays parts;  // all devices work before the host waits for the first
  for (const ParameterArena& arena : layout_.arenas()) {
    if (arena.size() > 0) parts.push_back(sum_of_squares(arena.gradient()));
  }
  double total = 0;
  for (const Array& part : parts) total += part.item<double>();
  return std::sqrt(total);
}

void Optimizer::clip_grads(double maxnorm) {
  detail::check_maxnorm("clip_grads", maxnorm);
  const double norm = compute_grads_norm();
  if (!(norm > maxnorm)) return;
  for (const ParameterArena& arena : layout_.arenas())
    multiply(arena.gradient(), maxnorm / norm, arena.gradient());
}

void Optimizer::weight_decay(double decay) {
  finish_gradients("weight_decay");
  for (const ParameterArena& arena : layout_.arenas()) add_decayed(arena, decay);
}

void UpdateContext::clip_norm(double maxnorm) {
  detail::check_maxnorm("UpdateContext::clip_norm", maxnorm);
  apply();
  Array total;
  for (const ParameterArena& arena : optimizer_.layout_.arenas()) {
    if (arena.size() == 0) continue;
    const Array part = sum_of_squares(arena.gradient()).astype(Dtype::kFloat64, false);
    total = total.defined() ? add(total, part.to(total.device())) : part;
  }
  if (!total.defined()) return;
  // maxnorm / norm, at most one; the norm of zero gradients gives infinity, fmin skips NaN.
  const Array factor = fmin(multiply(rsqrt(total), maxnorm), 1.0);
  for (const ParameterArena& arena : optimizer_.layout_.arenas())
    scale_.push_back(factor.to(arena.device()));
}

void UpdateContext::apply() {
  const auto& arenas = optimizer_.layout_.arenas();
  for (size_t i = 0; i < arenas.size(); ++i) {
    const Array& g = arenas[i].gradient();
    if (!scale_.empty()) multiply(g, scale_[i].astype(g.dtype(), false), g);
    if (decay_ != 0) add_decayed(arenas[i], decay_);
  }
  scale_.clear();
  decay_ = 0;
}

// Update ------------------------------------------------------------------------------------------

// A loss that was computed without a graph (NoBackprop, constants) has an empty backward pass,
// which would go unnoticed as steps that change nothing.
void Optimizer::warn_without_gradients() {
  if (warned_ || source_ || ordered_.empty()) return;
  const auto reached = [](const Parameter& p) { return p.state()->has_gradient(); };
  if (std::any_of(ordered_.begin(), ordered_.end(), reached)) return;
  warned_ = true;
  logging::warning(
      "update: no parameter got a gradient since zero_grads; was the loss computed under "
      "NoBackprop, from constants only, or by another model? (said once)");
}

void Optimizer::update() {
  const ProfilerRange range("Optimizer::update");
  warn_without_gradients();
  finish_gradients("update");
  UpdateContext context(*this);
  for (const auto& [name, hook] : hooks_) hook(context);
  if (t_++ == 0) warn_about_forgotten_parameters("update");
  if (!updates_arenas()) context.apply();
  for (size_t i = 0; i < groups_.size(); ++i) run_rule(i, context);
  if (source_) source_->after_update(*this);
}

void Optimizer::run_rule(size_t index, UpdateContext& context) {
  const ParameterArena& arena = layout_.arenas()[index];
  Group& group = groups_[index];
  DeviceScope scope(arena.device());
  ArenaUpdate update;
  update.step.value = static_cast<double>(t_);
  update.learning_rate.value = lr_;
  if (group.values.block.defined()) {
    update.learning_rate.device_value = &group.values.learning_rate;
    if (updates_arenas() && counts_updates()) {
      update.counter = group.values.counter;
    } else {
      add(group.values.step, 1.0, group.values.step);
      update.step.device_value = &group.values.step;
    }
  }
  if (!updates_arenas()) return update_each(arena);
  if (!context.scale_.empty()) update.gradient_scale.device_value = &context.scale_[index];
  update.weight_decay = context.decay_;
  update.parameter = arena.data();
  update.gradient = arena.gradient();
  update.states = group.states;
  update_arena(update);
  arena.data().note_write();
}

void Optimizer::update_each(const ParameterArena& arena) {
  for (const ParameterArena::Slot& slot : arena.slots()) {
    update_one(slot.parameter.data(), slot.parameter.grad(), states_[size_t(slot.index)]);
    slot.parameter.data().note_write();
  }
}

}  // namespace catena::optimizers
