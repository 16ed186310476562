// Table of the inner loops of normalizations whose rows have a gamma and beta for each number,
// compiled once for each x86-64 level; those with one for runs of numbers share the loops of batch
// normalization. See tables.h for what it may include.
#pragma once

#include <cstdint>

#include "backends/cpu/loops/levels.h"

namespace catena::host {

// Loops over n numbers of a row, beginning at those that the pointers show. gamma and beta may be
// null, for ones and zeros.
template <class T>
struct RowNormalizationLoops {
  T (*sum_of_squares)(const T* x, int64_t n);
  // sum = x + other. sum may be either of them.
  void (*add)(const T* x, const T* other, T* sum, int64_t n);
  // y = ((x - mean) * scale + rest) * gamma + beta. y may be x.
  struct Apply {
    const T *x, *gamma, *beta;
    T mean, scale, rest;
    T* y;
  };
  void (*apply)(const Apply& a, int64_t n);
  // With h = gamma * gy: the sums of h and of h * (x - mean).
  struct Sums {
    const T *x, *gy, *gamma;
    T mean;
    T *h, *hx;
  };
  void (*sums)(const Sums& s, int64_t n);
  // gx = of_h * gamma * gy + of_x * (x - mean) + constant.
  struct Gradient {
    const T *x, *gy, *gamma;
    T mean, of_h, of_x, constant;
    T* gx;
  };
  void (*gradient)(const Gradient& g, int64_t n);
  // g_gamma += gy * ((x - mean) * scale + rest), g_beta += gy; both may be null.
  struct Parameters {
    const T *x, *gy;
    T mean, scale, rest;
    T *g_gamma, *g_beta;
  };
  void (*parameters)(const Parameters& p, int64_t n);
};

using RowNormalizationTables = LoopsByType<RowNormalizationLoops>;
CATENA_DECLARE_LOOPS(RowNormalizationTables)

}  // namespace catena::host
