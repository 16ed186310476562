// Running maxima of small windows, with few instructions an element: what is larger is found by
// plain comparisons, 16-bit numbers two at a time. NaN is not larger than anything and is watched
// for instead; who finds some pools again by largest.cuh.
#pragma once

#include <string.h>

#include "backends/cuda/common/pairs.cuh"
#include "backends/cuda/pooling/pooling_index.cuh"

namespace catena::gpu {

// Uses a number, so that the compiler computes it here: results that a branch stores are otherwise
// computed in the branch, from comparisons that have been spilled by then.
__device__ inline void settle(uint32_t& number) { asm volatile("" : "+r"(number)); }

// The largest elements of a pack so far, and their numbers in the window. Of equal ones the first
// one stays.
template <class T, int N>
struct Running {
  using C = Compute<T>;
  C best[N];
  uint32_t place[N];

  __device__ void see(const Pack<T, N>& v, int tap) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const C value = widen(v.v[i]);
      const bool larger = tap == 0 || value > best[i];
      best[i] = larger ? value : best[i];
      place[i] = larger ? uint32_t(tap) : place[i];
    }
  }
  __device__ void settle_places() {
#pragma unroll
    for (int i = 0; i < N; ++i) settle(place[i]);
  }
  __device__ int tap(int i) const { return int(place[i]); }
  __device__ Pack<T, N> values() const {
    Pack<T, N> result;
#pragma unroll
    for (int i = 0; i < N; ++i) result.v[i] = Narrow<T>::from(best[i]);
    return result;
  }
};

// Sums, which are NaN if an element is NaN (or if there are infinite ones of both signs).
template <class T, int N>
struct Watch {
  using C = Compute<T>;
  C sums[N] = {};

  __device__ void see(const Pack<T, N>& v) {
#pragma unroll
    for (int i = 0; i < N; ++i) sums[i] += widen(v.v[i]);
  }
  __device__ bool found() const {
    bool any = false;
#pragma unroll
    for (int i = 0; i < N; ++i) any = any || sums[i] != sums[i];
    return any;
  }
};

template <class To, class From>
__device__ To bits_as(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "bits of the same size");
  To to;
  memcpy(static_cast<void*>(&to), &from, sizeof to);
  return to;
}

template <class T>
struct RunningPairs {
  static constexpr int kPairs = kPack<T> / 2;
  using Pair = typename PairOf<T>::type;
  uint32_t best[kPairs], place[kPairs];

  __device__ void see(const Pack<T, kPack<T>>& v, int tap) {
    const auto words = bits_as<Pack<uint32_t, kPairs>>(v);
    const uint32_t taps = uint32_t(tap) * 0x10001u;
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      const uint32_t larger =
          tap == 0 ? ~0u : __hgt2_mask(bits_as<Pair>(words.v[i]), bits_as<Pair>(best[i]));
      best[i] = tap == 0 ? words.v[i] : (words.v[i] & larger) | (best[i] & ~larger);
      place[i] = tap == 0 ? 0 : (taps & larger) | (place[i] & ~larger);
    }
  }
  __device__ void settle_places() {
#pragma unroll
    for (int i = 0; i < kPairs; ++i) settle(place[i]);
  }
  __device__ int tap(int i) const { return int(place[i / 2] >> (16 * (i % 2)) & 0xffffu); }
  __device__ Pack<T, kPack<T>> values() const {
    Pack<uint32_t, kPairs> words;
#pragma unroll
    for (int i = 0; i < kPairs; ++i) words.v[i] = best[i];
    return bits_as<Pack<T, kPack<T>>>(words);
  }
};
template <>
struct Running<__half, 8> : RunningPairs<__half> {};
template <>
struct Running<__nv_bfloat16, 8> : RunningPairs<__nv_bfloat16> {};

template <class T>
struct WatchPairs {
  static constexpr int kPairs = kPack<T> / 2;
  using Pair = typename PairOf<T>::type;
  uint32_t sums[kPairs] = {};

  __device__ void see(const Pack<T, kPack<T>>& v) {
    const auto words = bits_as<Pack<uint32_t, kPairs>>(v);
#pragma unroll
    for (int i = 0; i < kPairs; ++i)
      sums[i] = bits_as<uint32_t>(__hadd2(bits_as<Pair>(sums[i]), bits_as<Pair>(words.v[i])));
  }
  __device__ bool found() const {
    bool any = false;
#pragma unroll
    for (int i = 0; i < kPairs; ++i) {
      const Pair sum = bits_as<Pair>(sums[i]);
      any = any || __hisnan(sum.x) || __hisnan(sum.y);
    }
    return any;
  }
};
template <>
struct Watch<__half, 8> : WatchPairs<__half> {};
template <>
struct Watch<__nv_bfloat16, 8> : WatchPairs<__nv_bfloat16> {};

}  // namespace catena::gpu
