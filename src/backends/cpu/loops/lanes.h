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
// The sum of the lanes, pairwise.
template <class T>
inline __attribute__((always_inline)) T sum_of_lanes(typename Lanes<T>::Vector v) {
  const auto eight = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                     __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
  const auto four = __builtin_shufflevector(eight, eight, 0, 1, 2, 3) +
                    __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  return (four[0] + four[2]) + (four[1] + four[3]);
}
// The sum of the lanes and of `count` further elements.
template <class T>
inline __attribute__((always_inline)) T join(typename Lanes<T>::Vector v, const T* rest,
                                             int64_t count) {
  T lanes[kLanes] = {};
  if (count > 0) {
    for (int64_t i = 0; i < count; ++i) lanes[i] = rest[i];
    v += load(lanes);
  }
  return sum_of_lanes<T>(v);
}

// Sums side by side, so that an addition need not wait for the one before it. The registers of
// AVX-512 hold four of two kinds.
#ifdef __AVX512F__
constexpr int kChains = 4;
#else
constexpr int kChains = 2;
#endif

// add(at, to) adds to `to` what it finds at `at`. sums: what it adds for at = 0, kLanes, ... below
// `whole`, a multiple of kLanes.
template <class T, int kSums, class F>
inline __attribute__((always_inline)) void add_lanes(int64_t whole,
                                                     typename Lanes<T>::Vector (&sums)[kSums],
                                                     F add) {
  typename Lanes<T>::Vector chains[kChains][kSums] = {};
  int64_t at = 0;
  for (; at + kChains * kLanes <= whole; at += kChains * kLanes)
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) add(at + c * kLanes, chains[c]);
  for (; at < whole; at += kLanes) add(at, chains[0]);
#pragma GCC unroll 4
  for (int k = 0; k < kSums; ++k) {
    sums[k] = chains[0][k] + chains[1][k];
    if constexpr (kChains == 4) sums[k] += chains[2][k] + chains[3][k];
  }
}

template <class T>
T sum(const T* a, int64_t n) {
  const int64_t whole = n / kLanes * kLanes;
  typename Lanes<T>::Vector sums[1];
  add_lanes<T>(
      whole,
      sums, [&](int64_t at, auto& to) __attribute__((always_inline)) { to[0] += load(a + at); });
  return join(sums[0], a + whole, n - whole);
}

template <class T>
T dot(const T* a, const T* b, int64_t n) {
  const int64_t whole = n / kLanes * kLanes;
  typename Lanes<T>::Vector sums[1];
  add_lanes<T>(
      whole, sums, [&](int64_t at, auto& to) __attribute__((always_inline)) {
        to[0] += load(a + at) * load(b + at);
      });
  T rest[kLanes];
  for (int64_t i = 0; i < n - whole; ++i) rest[i] = a[whole + i] * b[whole + i];
  return join(sums[0], rest, n - whole);
}

}  // namespace
}  // namespace catena::host
