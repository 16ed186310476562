// Positions of index arrays on the GPU.
#pragma once

#include <stdint.h>

#ifndef CATENA_FN
#define CATENA_FN __host__ __device__ inline
#endif
#include "backends/cuda/index/indexing.h"
#include "device/index.h"

namespace catena::gpu {

// Divide the number of an element by an extent; 32-bit numbers by a multiplication.
struct Narrow32 {
  using Place = uint32_t;
  jit::Divider divider;
  __device__ uint32_t operator()(uint32_t n, uint32_t& rest) const {
    return jit::divide(n, divider, rest);
  }
};
struct Wide {
  using Place = int64_t;
  int64_t divisor;
  __device__ int64_t operator()(int64_t n, int64_t& rest) const {
    rest = n % divisor;
    return n / divisor;
  }
};
// Calls f(by_a, by_b) with dividers by a and by b for numbers below `total`.
template <class F>
void with_dividers(int64_t total, int64_t a, int64_t b, const F& f) {
  if (total < (int64_t(1) << 31))
    f(Narrow32{jit::make_divider(uint32_t(a))}, Narrow32{jit::make_divider(uint32_t(b))});
  else
    f(Wide{a}, Wide{b});
}

// The position in [0, extent): clipped, or counted from the end and wrapped around.
template <class I>
__device__ inline int64_t resolve(I position, int64_t extent, bool clip) {
  int64_t p = position;
  if (p >= 0 && p < extent) return p;
  if (clip) return p < 0 ? 0 : extent - 1;
  if (p < 0 && p >= -extent) return p + extent;
  p %= extent;
  return p < 0 ? p + extent : p;
}

// The same, or what stands for no slice.
constexpr int64_t kIgnored = -1, kOutside = -2;
template <class I>
__device__ inline int64_t resolve(I position, int64_t extent, const Positions& rule) {
  if (!rule.strict) return resolve(position, extent, rule.clip);
  if (rule.ignores && position == rule.ignored) return kIgnored;
  return position >= 0 && position < extent ? int64_t(position) : kOutside;
}

}  // namespace catena::gpu
