// In which dtype sums and factors of floating-point numbers are kept.
#pragma once

#include "catena/core/dtype.h"

namespace catena {

// float64 for float64, else float32: 16 bits would lose sums, and factors that are small.
inline Dtype compute_dtype(Dtype dtype) {
  return dtype == Dtype::kFloat64 ? Dtype::kFloat64 : Dtype::kFloat32;
}

}  // namespace catena
