// Table of the inner loops of sampled losses, compiled once for each x86-64 level. See tables.h for
// what it may include.
#pragma once

#include <cstdint>

#include "backends/cpu/loops/levels.h"

namespace catena::host {

// T is float or double. Buffers of terms have room for a multiple of kTermBlock elements.
inline constexpr int64_t kTermBlock = 16;
template <class T>
struct SampledLogisticLoops {
  // products[k] = x times rows[k], n contiguous elements each, for k < count <= kTermBlock.
  void (*products)(const T* x, const T* const* rows, int64_t count, int64_t n, T* products);
  // With p = signs[k] * products[k]: losses[k] = log(1 + exp(-p)) and coefficients[k] = -signs[k] /
  // (1 + exp(p)), up to the next multiple of kTermBlock.
  void (*terms)(const T* products, const T* signs, int64_t count, T* losses, T* coefficients);
  // sum (+)= sum over k < count of factors[k] * rows[k], n contiguous elements each.
  void (*combine)(const T* const* rows, const T* factors, int64_t count, int64_t n, bool accumulate,
                  T* sum);
};

using SampledLogisticTables = LoopsByType<SampledLogisticLoops>;
CATENA_DECLARE_LOOPS(SampledLogisticTables)

}  // namespace catena::host
