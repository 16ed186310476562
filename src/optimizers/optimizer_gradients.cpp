// Gradients of all parameters: zeroing, sums over replicas, norms, decay.
#include <algorithm>
#include <cmath>

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/optimizers/optimizer.h"
#include "optimizers/arena_sums.h"

namespace catena::optimizers {

void Optimizer::zero_grads() {
  require_setup("zero_grads");
  settle_layout();
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
  for (const auto& stage : current_stages()) stage->before_accumulate(*this);
  const bool in_place = layout_.in_place();
  Arrays by_index(layout_.parameters().size());
  for (size_t i = 0; i < ordered_.size(); ++i) by_index[positions_[i]] = gradients[i];
  for (const ParameterArena& arena : layout_.arenas()) {
    const auto is_stale = [](const ParameterArena::Slot& s) {
      return s.parameter.state()->is_stale();
    };
    const bool is_whole = in_place && arena.has_whole_gradient();
    const Array block = is_whole ? common_block(arena, by_index) : Array();
    if (block.defined()) {
      const Array& gradient = arena.gradient().memory;
      if (std::all_of(arena.slots().begin(), arena.slots().end(), is_stale)) {
        gradient.assign(block);
      } else {
        arena.settle_gradients();
        add(gradient, block.to(arena.device()), gradient);
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
  for (size_t i = 0; i < layout_.arenas().size(); ++i) {
    const ParameterArena& arena = layout_.arenas()[i];
    if (arena.size() == 0) continue;
    Array part = sum_of_squares(i);
    if (const Array factor = gradient_factor(arena.device()); factor.defined())
      part = multiply(part, square(factor));
    parts.push_back(part);
  }
  // Other processes may have elements where this one has none.
  if (parts.empty()) {
    if (layout_.arenas().empty()) return 0;
    parts.push_back(zeros({}, {Dtype::kFloat64, layout_.arenas()[0].device()}));
  }
  Array total = parts[0].copy();
  for (size_t i = 1; i < parts.size(); ++i) total += parts[i].to(total.device());
  sum_over_processes({total}, Processes::Sum::kNorm);
  return std::sqrt(total.item<double>());
}

void detail::check_maxnorm(const char* who, double maxnorm) {
  CATENA_CHECK(ValueError, maxnorm > 0, who, ": expected a norm above 0, got ", maxnorm);
}

void Optimizer::clip_grads(double maxnorm) {
  detail::check_maxnorm("clip_grads", maxnorm);
  const double norm = compute_grads_norm();
  if (!(norm > maxnorm)) return;
  for (const ParameterArena& arena : layout_.arenas())
    multiply(arena.gradient().memory, maxnorm / norm, arena.gradient().memory);
}

void Optimizer::weight_decay(double decay) {
  finish_gradients("weight_decay");
  for (size_t i = 0; i < layout_.arenas().size(); ++i)
    add_decay(i, decay, gradient_factor(layout_.arenas()[i].device()), Decay::kValue);
}

// Of elements that are kept here. The factors of groups are read on the device.
void Optimizer::add_decay(size_t index, double rate, const Array& factor, Decay of) const {
  const ParameterArena& arena = layout_.arenas()[index];
  const ElementRange kept = intersection(arena.data().covers, arena.gradient().covers);
  const auto values = [&](const ElementRange& elements) {
    const Array part = arena.data().part(elements);
    return of == Decay::kSign ? sign(part) : part;
  };
  if (groups_.all().empty())
    return add_decayed(values(kept), arena.gradient().part(kept), rate, factor);
  for (size_t s = 0; s < arena.slots().size(); ++s) {
    const ElementRange elements = intersection(arena.slot_range(s, s + 1), kept);
    if (elements.size() == 0) continue;
    const Array of_group = segments_[index].factors(int64_t(s), 1);
    add_decayed(values(elements), arena.gradient().part(elements), rate,
                factor.defined() ? divide(factor, of_group) : divide(1.0, of_group));
  }
}

// What reads gradients ---------------------------------------------------------------------------

bool Optimizer::reduces_gradients() const {
  return !stages_.empty() && stages_.front()->phase() == UpdatePhase::kReduce;
}

// An arena is made anew from what is here.
void Optimizer::require_gradients_to_move() const {
  for (size_t i = 0; i < layout_.parameters().size(); ++i) {
    const ParameterState& state = *layout_.parameters()[i].state();
    CATENA_CHECK(GradientError, state.has_gradient_here() || !state.has_gradient(),
                 "update: parameters have moved, or another optimizer has taken them, since their "
                 "gradients were averaged over processes; of the gradient of '",
                 layout_.name(i), "' this process keeps a part. Call zero_grads() after that");
  }
}

void Optimizer::finish_gradients(UpdateContext& update) {
  if (!layout_.in_place()) {
    require_gradients_to_move();
    settle_layout();
  }
  for (const auto& stage : current_stages()) {
    if (stage->phase() != UpdatePhase::kReduce) break;
    stage->run(update);
  }
  if (!update.waits_by_arena()) layout_.settle_gradients();
}

void Optimizer::finish_gradients(const char* who) {
  require_setup(who);
  UpdateContext update(*this);
  finish_gradients(update);
}

}  // namespace catena::optimizers
