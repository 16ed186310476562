// Sums in lanes, for loops over rows of floats; internal linkage (see loop.h).
#pragma once

#include "backends/cpu/loops/loop.h"

namespace catena::host {
namespace {

// kLanes sums side by side, as a vector type of the compiler that does not depend on the
// processor's width. It is only passed between functions that are always inlined (-Wno-psabi).
template <class T>
struct Lanes;
template <>
struct Lanes<float> {
  typedef float Vector __attribute__((vector_size(64), aligned(4), may_alias));
};
template <>
struct Lanes<double> {
  typedef double Vector __attribute__((vector_size(128), aligned(8), may_alias));
};
template <class T>
inline __attribute__((always_inline)) typename Lanes<T>::Vector load(const T* x) {
  return *reinterpret_cast<const typename Lanes<T>::Vector*>(x);
}
// The sum of the lanes (pairwise) and of `count` further elements.
template <class T>
inline __attribute__((always_inline)) T join(typename Lanes<T>::Vector v, const T* rest,
                                             int64_t count) {
  T lanes[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) lanes[i] = v[i];
  for (int64_t i = 0; i < count; ++i) lanes[i] += rest[i];
  for (int64_t half = kLanes / 2; half >= 1; half /= 2) {
    for (int64_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

template <class T>
T sum(const T* a, int64_t n) {
  typename Lanes<T>::Vector sums = {};
  int64_t at = 0;
  for (; at + kLanes <= n; at += kLanes) sums += load(a + at);
  return join(sums, a + at, n - at);
}

}  // namespace
}  // namespace catena::host
