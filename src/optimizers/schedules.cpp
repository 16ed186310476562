#include "catena/optimizers/schedules.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "catena/core/error.h"

namespace catena::optimizers {
namespace {

void check_positive(const char* who, const char* what, int64_t value) {
  CATENA_CHECK(ValueError, value > 0, who, ": expected a positive ", what, ", got ", value);
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

}  // namespace catena::optimizers
