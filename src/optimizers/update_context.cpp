// What the stages of an update remember of the gradients, and how it is carried out.
#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/optimizers/optimizer.h"
#include "core/compute_dtype.h"

namespace catena::optimizers {

void UpdateContext::note_change(GradientChange change) {
  CATENA_CHECK(ValueError,
               !change.what.empty() && change.what.find_first_of("\t\n") == std::string::npos,
               "UpdateContext::note_change: expected a word or two, got '", change.what, "'");
  changes_.push_back(std::move(change));
}

void UpdateContext::add_weight_decay(double rate) {
  note_change({"weight decay", {rate}});
  decay_ += rate;
}

void UpdateContext::clip_norm(double maxnorm) {
  detail::check_maxnorm("UpdateContext::clip_norm", maxnorm);
  note_change({"clipping by the norm", {maxnorm}});
  if (decay_ != 0) apply();
  const std::vector<ParameterArena>& arenas = optimizer_.layout().arenas();
  Array total;
  for (size_t i = 0; i < arenas.size(); ++i) {
    if (arenas[i].size() == 0) continue;
    Array part = optimizer_.sum_of_squares(i);
    if (const Array* pending = factor(i)) part = multiply(part, square(*pending));
    total = total.defined() ? add(total, part.to(total.device())) : part;
  }
  if (!total.defined()) {  // other processes may have elements
    if (arenas.empty()) return;
    total = zeros({}, {Dtype::kFloat64, arenas[0].device()});
  }
  optimizer_.sum_over_processes({total}, Processes::Sum::kNorm);
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
  CATENA_CHECK(ValueError, optimizer_.can_be_sharded(),
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
    const Array& g = arenas[i].gradient().memory;
    if (const Array* pending = factor(i)) {
      multiply(g, pending->astype(compute_dtype(g.dtype()), false), g);  // rounded once, into g
      optimizer_.note_unscaled();
    }
    if (decay_ != 0) optimizer_.add_decay(i, decay_, {}, Optimizer::Decay::kValue);
  }
  scale_.clear();
  decay_ = 0;
}

void UpdateContext::add_sign_decay(double rate) {
  note_change({"sign decay", {rate}});
  apply();
  for (size_t i = 0; i < optimizer_.layout().arenas().size(); ++i)
    optimizer_.add_decay(i, rate, {}, Optimizer::Decay::kSign);
}

const std::vector<ElementRange>& UpdateContext::ranges(size_t arena) const {
  static const std::vector<ElementRange> all;
  return ranges_.empty() ? all : ranges_[arena];
}

Array UpdateContext::updates(size_t arena) const { return optimizer_.t_on_device(arena); }

}  // namespace catena::optimizers
