// Maximum and minimum of contiguous elements; internal linkage throughout (see loop.h).
#pragma once

#include <cstdint>

#include "backends/cpu/loops/vector_bytes.h"

namespace catena::host {
namespace {

// Every level uses the same number of lanes, so the choice among equal elements (0 and -0) does not
// depend on the level.
constexpr int kLaneBytes = 256;
template <class T>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));
};

// NaN wins: it replaces any accumulator and is never replaced. select() is one instruction for
// vectors, and right for numbers only.
struct MaxOp {
  template <class T>
  static inline __attribute__((always_inline)) T select(T acc, T x) {
    return x > acc ? x : acc;
  }
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
  static inline __attribute__((always_inline)) T select(T acc, T x) {
    return x < acc ? x : acc;
  }
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

// Reduces kLanes elements by halves. The result is the first.
template <int kLanes, class T, class Join>
inline __attribute__((always_inline)) T fold_lanes(T* lanes, const Join& join) {
  if constexpr (kLanes > 1) {
    constexpr int kHalf = kLanes / 2;
    for (int k = 0; k < kHalf; ++k) lanes[k] = join(lanes[k], lanes[k + kHalf]);
    return fold_lanes<kHalf>(lanes, join);
  } else {
    return lanes[0];
  }
}

// The extreme of n >= kLanes elements in kLanes interleaved ones.
template <class Op, int kLanes, class T>
inline __attribute__((always_inline)) T extreme_of_lanes(const T* x, int64_t n) {
  T lanes[kLanes];
  for (int k = 0; k < kLanes; ++k) lanes[k] = x[k];
  int64_t i = kLanes;
  for (; i + kLanes <= n; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) lanes[k] = Op::step(lanes[k], x[i + k]);
  }
  if (i < n) {  // the last lanes read some elements twice, which is harmless
    for (int k = 0; k < kLanes; ++k) lanes[k] = Op::step(lanes[k], x[n - kLanes + k]);
  }
  return fold_lanes<kLanes>(lanes, [](T a, T b) { return Op::step(a, b); });
}

// Writes the extreme of n >= kLaneBytes / sizeof(T) numbers to *result. Returns false if there may
// be a NaN among them, which the sum of the elements shows at one instruction a vector (infinities
// of both signs look like one).
template <class Op, class T>
inline __attribute__((always_inline)) bool extreme_of_numbers(const T* x, int64_t n, T* result) {
  using Vector = typename VectorOf<T>::Type;
  constexpr int kVectors = kLaneBytes / kVectorBytes, kWidth = kVectorBytes / int(sizeof(T));
  constexpr int64_t kLanes = kVectors * kWidth;
  constexpr bool kHasNan = T(0.5) != T(0);
  Vector best[kVectors], sums[2] = {};
  const auto take = [&](int64_t at, bool first) {
    for (int k = 0; k < kVectors; ++k) {
      const Vector v = *reinterpret_cast<const Vector*>(x + at + k * kWidth);
      best[k] = first ? v : Op::select(best[k], v);
      if constexpr (kHasNan) sums[k % 2] += v;
    }
  };
  take(0, true);
  int64_t i = kLanes;
  for (; i + kLanes <= n; i += kLanes) take(i, false);
  if (i < n) take(n - kLanes, false);
  T lanes[kLanes];
  for (int k = 0; k < kVectors; ++k) *reinterpret_cast<Vector*>(lanes + k * kWidth) = best[k];
  *result = fold_lanes<int(kLanes)>(lanes, [](T a, T b) { return Op::select(a, b); });
  if constexpr (kHasNan) {
    *reinterpret_cast<Vector*>(lanes) = sums[0] + sums[1];
    const T total = fold_lanes<kWidth>(lanes, [](T a, T b) { return a + b; });
    return total == total;
  }
  return true;
}

// The extreme of n >= 1 elements; NaN if there is one.
template <class Op, class T>
inline __attribute__((always_inline)) T extreme(const T* x, int64_t n) {
  constexpr int kMany = kLaneBytes / sizeof(T), kFew = 64 / sizeof(T);
  T result = x[0];
  if (n >= kMany) {
    if (extreme_of_numbers<Op>(x, n, &result)) return result;
    return extreme_of_lanes<Op, kMany>(x, n);
  }
  if (n >= kFew) return extreme_of_lanes<Op, kFew>(x, n);
  for (int64_t i = 1; i < n; ++i) result = Op::step(result, x[i]);
  return result;
}

}  // namespace
}  // namespace catena::host
