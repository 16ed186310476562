// What the records of the losses share: references of reductions.
#pragma once

#include "catena/functions/loss/reduction.h"
#include "functions/function_record.h"

namespace catena {

inline constexpr F::Reduction kReductions[] = {F::Reduction::kMean, F::Reduction::kSum,
                                               F::Reduction::kNone};
inline const char* name_of(F::Reduction reduction) {
  return reduction == F::Reduction::kMean  ? "mean"
         : reduction == F::Reduction::kSum ? "sum"
                                           : "each";
}

// The losses, reduced; the mean divides by `divisor`, 0 or less for 1.
inline Plains reduced(const Plain& losses, F::Reduction reduction, double divisor) {
  if (reduction == F::Reduction::kNone) return {losses};
  const double total = added_up(losses.values);
  return {plain(reduction == F::Reduction::kMean ? total / (divisor > 0 ? divisor : 1) : total)};
}
inline Plains reduced(const Plain& losses, F::Reduction reduction) {
  return reduced(losses, reduction, double(losses.values.size()));
}

// (n, classes, ...) without the classes.
inline Shape without_classes(Shape shape) {
  shape.erase(shape.begin() + 1);
  return shape;
}
// The index of a class of a sample.
inline Shape of_class(Shape sample, int64_t c) {
  sample.insert(sample.begin() + 1, c);
  return sample;
}

}  // namespace catena
