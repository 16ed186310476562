// Maximum and minimum of contiguous elements; internal linkage throughout (see loop.h).
#pragma once

#include <cstdint>

namespace catena::host {
namespace {

// NaN wins: it replaces any accumulator and is never replaced. Two selections: the first is an
// instruction of its own.
struct MaxOp {
  template <class T>
  static inline __attribute__((always_inline)) T step(T acc, T x) {
    const T larger = x > acc ? x : acc;
    return x != x ? x : larger;
  }
  template <class T>
  static inline __attribute__((always_inline)) T join(T a, T b) {
    return step(a, b);
  }
};
struct MinOp {
  template <class T>
  static inline __attribute__((always_inline)) T step(T acc, T x) {
    const T smaller = x < acc ? x : acc;
    return x != x ? x : smaller;
  }
  template <class T>
  static inline __attribute__((always_inline)) T join(T a, T b) {
    return step(a, b);
  }
};

// The extreme of n >= kLanes elements in kLanes interleaved ones.
template <class Op, int kLanes, class T>
inline __attribute__((always_inline)) T extreme_of_lanes(const T* x, int64_t n) {
  T lanes[kLanes];
  for (int k = 0; k < kLanes; ++k) lanes[k] = x[k];
  int64_t i = kLanes;
  for (; i + kLanes <= n; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) lanes[k] = Op::step(lanes[k], x[i + k]);
  }
  if (i < n) {  // the last lanes see some elements twice, which does not matter
    for (int k = 0; k < kLanes; ++k) lanes[k] = Op::step(lanes[k], x[n - kLanes + k]);
  }
  for (int half = kLanes / 2; half >= 1; half /= 2) {
    for (int k = 0; k < half; ++k) lanes[k] = Op::step(lanes[k], lanes[k + half]);
  }
  return lanes[0];
}

// The extreme of n >= 1 elements; NaN when there is one. As many lanes on every level, so that
// which of several equal elements (0 and -0) comes out does not depend on the processor.
template <class Op, class T>
inline __attribute__((always_inline)) T extreme(const T* x, int64_t n) {
  constexpr int kMany = 256 / sizeof(T), kFew = 64 / sizeof(T);
  if (n >= kMany) return extreme_of_lanes<Op, kMany>(x, n);
  if (n >= kFew) return extreme_of_lanes<Op, kFew>(x, n);
  T result = x[0];
  for (int64_t i = 1; i < n; ++i) result = Op::step(result, x[i]);
  return result;
}

}  // namespace
}  // namespace catena::host
