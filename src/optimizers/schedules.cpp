#include "catena/optimizers/schedules.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "catena/core/error.h"

namespace catena::optimizers {
namespace {

void check_positive(const char* who, const char* what, int64_t value) {
  CATENA_CHECK(ValueError, value > 0, who, ": expected a positive ", what, ", got ", value);
}

void check_schedule(const char* who, const Schedule& then) {
  CATENA_CHECK(ValueError, then != nullptr, who,
               ": the schedule that is scaled is empty; give one, such as cosine(...)");
}

// Share of `total` that is done, at most one.
double progress(int64_t step, int64_t total) {
  return step >= total ? 1.0 : static_cast<double>(step) / static_cast<double>(total);
}

}  // namespace

Schedule exponential(double base, double rate) {
  return [=](int64_t step) { return base * std::pow(rate, static_cast<double>(step)); };
}

Schedule step_decay(double base, double factor, int64_t every) {
  check_positive("step_decay", "number of steps", every);
  return [=](int64_t step) { return base * std::pow(factor, static_cast<double>(step / every)); };
}

Schedule multi_step(double base, double factor, std::vector<int64_t> milestones) {
  for (size_t i = 0; i < milestones.size(); ++i)
    CATENA_CHECK(ValueError, milestones[i] > (i == 0 ? 0 : milestones[i - 1]),
                 "multi_step: expected positive milestones that ascend, got ", milestones[i],
                 " at position ", i);
  return [base, factor, milestones = std::move(milestones)](int64_t step) {
    const auto passed = std::upper_bound(milestones.begin(), milestones.end(), step);
    return base * std::pow(factor, static_cast<double>(passed - milestones.begin()));
  };
}

Schedule polynomial(double base, double final, int64_t total, double power) {
  check_positive("polynomial", "number of steps", total);
  return [=](int64_t step) {
    return final + (base - final) * std::pow(1 - progress(step, total), power);
  };
}

Schedule cosine(double base, double final, int64_t total) {
  check_positive("cosine", "number of steps", total);
  return [=](int64_t step) {
    if (step >= total) return final;
    return final + (base - final) * (1 + std::cos(std::numbers::pi * progress(step, total))) / 2;
  };
}

Schedule linear_warmup(int64_t warmup, Schedule then) {
  check_positive("linear_warmup", "number of steps", warmup);
  CATENA_CHECK(ValueError, then != nullptr,
               "linear_warmup: the schedule that follows is empty; give one, such as cosine(...)");
  return [warmup, then = std::move(then)](int64_t step) {
    if (step >= warmup) return then(step - warmup);
    return then(0) * static_cast<double>(step + 1) / static_cast<double>(warmup);
  };
}

Schedule inverse_square_root(double base, int64_t warmup) {
  check_positive("inverse_square_root", "number of steps", warmup);
  return [=](int64_t step) {
    const double share = double(step + 1) / double(warmup);
    return base * std::min(share, 1 / std::sqrt(share));
  };
}

Schedule one_cycle(double most, int64_t total, const OneCycleOptions& options) {
  const double top = options.rise * double(total) - 1, end = double(total) - 1;
  CATENA_CHECK(ValueError, options.rise > 0 && options.rise < 1 && top > 0 && top < end,
               "one_cycle: expected .rise in (0, 1) and more than one step of ", total,
               " on both sides of the highest rate, got .rise = ", options.rise);
  const double first = most * options.first, last = first * options.last;
  const auto wave = [](double from, double to, double share) {
    return share >= 1 ? to : from + (to - from) * (1 - std::cos(std::numbers::pi * share)) / 2;
  };
  return [=](int64_t step) {
    const auto at = static_cast<double>(step);
    return at <= top ? wave(first, most, at / top) : wave(most, last, (at - top) / (end - top));
  };
}

Schedule scaled(double factor, Schedule then) {
  check_schedule("scaled", then);
  return [factor, then = std::move(then)](int64_t step) { return factor * then(step); };
}

Schedule scaled_warmup(int64_t ranks, int64_t warmup, Schedule then) {
  check_positive("scaled_warmup", "number of ranks", ranks);
  CATENA_CHECK(ValueError, warmup >= 0,
               "scaled_warmup: expected a warm-up of at least 0 steps, got ", warmup);
  check_schedule("scaled_warmup", then);
  return [ranks, warmup, then = std::move(then)](int64_t step) {
    const double risen = step >= warmup ? 1 : double(step) / double(warmup);
    return (1 + double(ranks - 1) * risen) * then(step);
  };
}

double linearly_scaled(double base, int64_t batch, int64_t base_batch) {
  check_positive("linearly_scaled", "batch", batch);
  check_positive("linearly_scaled", "base_batch", base_batch);
  return base * double(batch) / double(base_batch);
}

}  // namespace catena::optimizers
