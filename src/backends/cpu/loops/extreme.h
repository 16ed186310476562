// Maximum and minimum of contiguous elements; internal linkage throughout (see loop.h).
#pragma once

#include <cstdint>

namespace catena::host {
namespace {

// NaN wins: it replaces any accumulator and is never replaced. For numbers and for vectors.
struct MaxOp {
  template <class V>
  static inline __attribute__((always_inline)) V step(V acc, V x) {
    return ((x > acc) | (x != x)) ? x : acc;
  }
  template <class V>
  static inline __attribute__((always_inline)) V join(V a, V b) {
    return step(a, b);
  }
};
struct MinOp {
  template <class V>
  static inline __attribute__((always_inline)) V step(V acc, V x) {
    return ((x < acc) | (x != x)) ? x : acc;
  }
  template <class V>
  static inline __attribute__((always_inline)) V join(V a, V b) {
    return step(a, b);
  }
};

template <class T, int kBytes>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kBytes), aligned(sizeof(T)), may_alias));
};

// The extreme of kBytes / sizeof(T) elements, by halves.
template <class Op, class T, int kBytes>
inline __attribute__((always_inline)) T fold(const T* x) {
  constexpr int kHalf = kBytes / 2 / int(sizeof(T));
  if constexpr (kBytes > 16) {
    using Half = typename VectorOf<T, kBytes / 2>::Type;
    const Half half =
        Op::step(*reinterpret_cast<const Half*>(x), *reinterpret_cast<const Half*>(x + kHalf));
    T lanes[kHalf];
    *reinterpret_cast<Half*>(lanes) = half;
    return fold<Op, T, kBytes / 2>(lanes);
  } else {
    T result = x[0];
    for (int k = 1; k < 2 * kHalf; ++k) result = Op::step(result, x[k]);
    return result;
  }
}

// The extreme of n >= 1 elements; NaN when there is one. Vectors of 64 bytes on every level, so
// that which of several equal elements (0 and -0) comes out does not depend on the processor.
template <class Op, class T>
inline __attribute__((always_inline)) T extreme(const T* x, int64_t n) {
  using Vector = typename VectorOf<T, 64>::Type;
  constexpr int64_t kLanes = 64 / sizeof(T);
  const auto load = [&](int64_t at) { return *reinterpret_cast<const Vector*>(x + at); };
  if (n < kLanes) {
    T result = x[0];
    for (int64_t i = 1; i < n; ++i) result = Op::step(result, x[i]);
    return result;
  }
  Vector best = load(0);
  int64_t i = kLanes;
  if (n >= 8 * kLanes) {
    Vector a = best, b = load(kLanes), c = load(2 * kLanes), d = load(3 * kLanes);
    for (i = 4 * kLanes; i + 4 * kLanes <= n; i += 4 * kLanes) {
      a = Op::step(a, load(i));
      b = Op::step(b, load(i + kLanes));
      c = Op::step(c, load(i + 2 * kLanes));
      d = Op::step(d, load(i + 3 * kLanes));
    }
    best = Op::step(Op::step(a, b), Op::step(c, d));
  }
  for (; i + kLanes <= n; i += kLanes) best = Op::step(best, load(i));
  if (i < n) best = Op::step(best, load(n - kLanes));  // some elements twice: no matter
  T lanes[kLanes];
  *reinterpret_cast<Vector*>(lanes) = best;
  return fold<Op, T, 64>(lanes);
}

}  // namespace
}  // namespace catena::host
