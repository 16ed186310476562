// Table of the inner loops of local response normalization, compiled once for each x86-64 level.
// See tables.h for what it may include.
#pragma once

#include <cstdint>

#include "backends/cpu/loops/levels.h"

namespace catena::host {

// Loops over n numbers. Arrays of one call do not overlap unless they are equal.
template <class T>
struct LocalResponseLoops {
  void (*square)(const T* x, T* y, int64_t n);
  // y[i] = k + alpha * (x[i] + x[i + step] + ... , `taps` numbers).
  void (*window)(const T* x, int64_t step, int64_t taps, T k, T alpha, T* y, int64_t n);
  // y = scale^-beta.
  void (*power)(const T* scale, T beta, T* y, int64_t n);
  void (*multiply)(const T* a, const T* b, T* y, int64_t n);
  // y = x * gy * power / scale.
  void (*term)(const T* x, const T* gy, const T* power, const T* scale, T* y, int64_t n);
  // gx = gy * power + factor * x * sum.
  void (*gradient)(const T* x, const T* gy, const T* power, const T* sum, T factor, T* gx,
                   int64_t n);
};

using LocalResponseTables = LoopsByType<LocalResponseLoops>;
CATENA_DECLARE_LOOPS(LocalResponseTables)

}  // namespace catena::host
