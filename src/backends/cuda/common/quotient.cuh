// Division of indices by numbers that are the same for a whole launch.
#pragma once

#include <stdint.h>

#ifndef CATENA_FN
#define CATENA_FN __host__ __device__ inline
#endif
#include "device/index.h"

namespace catena::gpu {

// Linear indices are 32-bit numbers where all arrays are small enough, divided by multiplication.
template <class Index>
struct Quotient;
template <>
struct Quotient<uint32_t> {
  jit::Divider by;
  explicit Quotient(int64_t divisor) : by(jit::make_divider(uint32_t(divisor))) {}
  __device__ uint32_t split(uint32_t& n) const {
    uint32_t rest;
    n = jit::divide(n, by, rest);
    return rest;
  }
  __device__ uint32_t of(uint32_t n) const { return jit::divide(n, by); }
};
template <>
struct Quotient<int64_t> {
  int64_t by;
  explicit Quotient(int64_t divisor) : by(divisor) {}
  __device__ int64_t split(int64_t& n) const {
    const int64_t rest = n % by;
    n /= by;
    return rest;
  }
  __device__ int64_t of(int64_t n) const { return n / by; }
};

}  // namespace catena::gpu
