#include "catena/optimizers/optimizer.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/core/graph.h"
#include "catena/core/log.h"
#include "optimizers/arena_sums.h"

namespace catena::optimizers {
namespace {

void check_rate(const std::string& name, double rate) {
  CATENA_CHECK(ValueError, std::isfinite(rate) && rate >= 0, "optimizer: the learning rate ", name,
               " is ", rate, ", expected a finite number of at least 0");
}

}  // namespace

void detail::check_maxnorm(const char* who, double maxnorm) {
  CATENA_CHECK(ValueError, maxnorm > 0, who, ": expected a norm above 0, got ", maxnorm);
}

Optimizer::Optimizer(std::string lr_name, double lr)
    : lr_name_(std::move(lr_name)), lr_(lr), stages_(built_in_stages()) {
  check_rate(lr_name_, lr);
}
Optimizer::~Optimizer() = default;

// Setup -------------------------------------------------------------------------------------------

void Optimizer::setup(Parameterized& model) {
  ArenaSet::Named named = model.named_parameters();
  for (auto& entry : named) entry.first.insert(0, 1, '/');
  NamedPersistents persistents = model.named_persistents();
  for (auto& entry : persistents) entry.first.insert(0, 1, '/');
  setup_named(named, model.parameters(), std::move(persistents));
}

namespace {

// Names of a list's parameters: their own ones, each with a slash in front, where they are unique.
ArenaSet::Named names_of(const Parameters& parameters) {
  ArenaSet::Named named;
  std::unordered_set<std::string> taken;
  for (const Parameter& p : parameters) {
    CATENA_CHECK(ValueError, p.defined(), "setup: parameter ", named.size(),
                 " of the list is undefined");
    std::string name = p.name();
    if (!name.empty() && name[0] != '/') name.insert(0, 1, '/');
    if (!taken.insert(name).second) name.clear();
    named.emplace_back(std::move(name), p);
  }
  for (size_t i = 0; i < named.size(); ++i) {
    for (size_t number = i; named[i].first.empty(); ++number)
      if (std::string free = message("/", number); taken.insert(free).second) named[i].first = free;
  }
  return named;
}

std::vector<size_t> positions_of(const Parameters& ordered, const ArenaSet& layout) {
  std::unordered_map<const ParameterState*, size_t> position;
  for (const Parameter& p : layout.parameters()) position.emplace(p.state(), position.size());
  std::vector<size_t> positions;
  for (const Parameter& p : ordered) positions.push_back(position.at(p.state()));
  return positions;
}

}  // namespace

void Optimizer::setup(const Parameters& parameters) {
  setup_named(names_of(parameters), parameters, {});
}

void Optimizer::setup_named(const ArenaSet::Named& named, const Parameters& ordered,
                            NamedPersistents persistents) {
  for (const auto& [name, p] : named) check_dtype(p.dtype());
  Groups groups{ArenaSet(named), {}, {}};
  make_groups(groups, 0, {});
  positions_ = positions_of(ordered, groups.layout);
  ordered_ = ordered;
  persistents_ = std::move(persistents);
  take(std::move(groups), 0);
  warn_about_forgotten_parameters("setup");
  for (const auto& stage : current_stages()) stage->after_setup(*this);
}

void Optimizer::make_groups(Groups& groups, int64_t t, const std::vector<Arrays>& old_states) {
  if (updates_arenas()) groups.layout.make_states(state_starts());
  groups.states.resize(groups.layout.parameters().size());
  for (const ParameterArena& arena : groups.layout.arenas()) {
    DeviceScope scope(arena.device());
    for (const ParameterArena::Slot& slot : arena.slots()) {
      const auto index = static_cast<size_t>(slot.index);
      const Arrays* old = old_states.empty() ? nullptr : &old_states[index];
      groups.states[index] = make_states(arena, slot, old);
    }
    groups.values.push_back(counts_on(arena.device()) ? make_device_values(arena.device(), t)
                                                      : DeviceValues());
  }
}

Arrays Optimizer::make_states(const ParameterArena& arena, const ParameterArena::Slot& slot,
                              const Arrays* old_states) {
  Arrays states;
  if (updates_arenas()) {
    for (const Array& flat : arena.states()) states.push_back(arena.slice(flat, slot));
    if (arena.master().defined()) states.push_back(arena.slice(arena.master(), slot));
    if (old_states == nullptr) return states;
    for (size_t k = 0; k < states.size(); ++k) states[k].assign((*old_states)[k]);
  } else if (old_states == nullptr) {
    states = init_state(slot.parameter.data(), slot.parameter.grad());
  } else {
    for (const Array& old : *old_states) states.push_back(old.to(arena.device()));
  }
  return states;
}

void Optimizer::take(Groups&& groups, int64_t t) {
  layout_ = std::move(groups.layout);
  values_ = std::move(groups.values);
  states_ = std::move(groups.states);
  t_ = t;
}

// On the host nobody knows of replays and of skipped updates.
bool Optimizer::counts_on(Device device) const {
  const auto skips = [](const auto& stage) { return stage->skips_updates(); };
  return device.is_cuda() || device_values_everywhere_ ||
         std::any_of(stages_.begin(), stages_.end(), skips);
}

Optimizer::DeviceValues Optimizer::make_device_values(Device device, int64_t t) const {
  DeviceValues values;
  values.block = zeros({3}, {Dtype::kFloat64, device});
  values.counter = values.block(Slice(0, 2));
  values.step = values.block[0];
  values.learning_rate = values.block[2];
  values.step.fill(static_cast<double>(t));
  values.learning_rate.fill(lr_);
  return values;
}

// Where there are none yet.
void Optimizer::add_device_values() {
  const int64_t t = this->t();
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!values_[i].block.defined())
      values_[i] = make_device_values(layout_.arenas()[i].device(), t);
  }
}

void Optimizer::settle_layout() {
  if (layout_.in_place()) return;
  const int64_t t = this->t();
  Groups groups{layout_, {}, {}};
  groups.layout.rebuild();
  make_groups(groups, t, states_);
  take(std::move(groups), t);
}

void Optimizer::prepare_for_capture() {
  require_setup("prepare_for_capture");
  settle_layout();
  device_values_everywhere_ = true;
  add_device_values();
  for (const auto& stage : current_stages()) stage->prepare_for_capture(*this);
}

void Optimizer::require_setup(const char* who) const {
  CATENA_CHECK(ValueError, is_set_up(), "Optimizer::", who,
               ": the optimizer has no parameters yet; call setup(model) first");
}

int64_t Optimizer::t() const {
  for (const DeviceValues& values : values_)
    if (values.block.defined()) return static_cast<int64_t>(values.step.item<double>());
  return t_;
}

void Optimizer::set_lr(double lr) {
  if (lr == lr_) return;
  check_rate(lr_name_, lr);
  for (const DeviceValues& values : values_) {
    CATENA_CHECK(
        ValueError, !values.block.defined() || !cuda::is_capturing(values.block.device()),
        "set_lr: called while a graph is captured, so that every replay would set the rate to ", lr,
        "; set it before the capture or between replays");
  }
  lr_ = lr;
  for (const DeviceValues& values : values_)
    if (values.block.defined()) values.learning_rate.fill(lr);
}

// Gradients ---------------------------------------------------------------------------------------

void Optimizer::zero_grads() {
  require_setup("zero_grads");
  unscaled_in_memory_ = false;
  for (const auto& stage : current_stages()) stage->discard(*this);
  for (const Parameter& p : layout_.parameters()) p.zero_grad();
}

void Optimizer::accumulate_grads(const Arrays& gradients) {
  require_setup("accumulate_grads");
  CATENA_CHECK(ValueError, gradients.size() == ordered_.size(),
               "accumulate_grads: the optimizer holds ", ordered_.size(), " parameters, got ",
               gradients.size(), " gradients");
  for (size_t i = 0; i < ordered_.size(); ++i) {
    CATENA_CHECK(ShapeError, !gradients[i].defined() || gradients[i].shape() == ordered_[i].shape(),
                 "accumulate_grads: parameter '", layout_.name(positions_[i]), "' has shape ",
                 ordered_[i].shape(), ", gradient ", i, " has ", gradients[i].shape(),
                 "; are they of a copy of this model?");
  }
  settle_layout();
  for (const auto& stage : current_stages()) stage->before_accumulate(*this);
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

// What the gradients in memory are to be multiplied by, as 0-d float64; undefined for one.
Array Optimizer::gradient_factor(Device device) const {
  Array product;
  if (unscaled_in_memory_) return product;
  for (const auto& stage : stages_) {
    const Array factor = stage->gradient_factor(device);
    if (factor.defined()) product = product.defined() ? multiply(product, factor) : factor;
  }
  return product;
}

double Optimizer::compute_grads_norm() {
  finish_gradients("compute_grads_norm");
  Arrays parts;  // all devices work before the host waits for the first
  for (const ParameterArena& arena : layout_.arenas()) {
    if (arena.size() == 0) continue;
    Array part = sum_of_squares(arena.gradient());
    if (const Array factor = gradient_factor(arena.device()); factor.defined())
      part = multiply(part.astype(Dtype::kFloat64, false), square(factor));
    parts.push_back(part);
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
  for (const ParameterArena& arena : layout_.arenas())
    add_decayed(arena, decay, gradient_factor(arena.device()));
}

}  // namespace catena::optimizers
