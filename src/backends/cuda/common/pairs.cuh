// Two 16-bit numbers in a register, which the hardware compares or rounds in one instruction.
#pragma once

#include "backends/cuda/common/float_access.cuh"

namespace catena::gpu {

template <class T>
struct PairOf;
template <>
struct PairOf<__half> {
  using type = __half2;
  static __device__ type from(float a, float b) { return __floats2half2_rn(a, b); }
};
template <>
struct PairOf<__nv_bfloat16> {
  using type = __nv_bfloat162;
  static __device__ type from(float a, float b) { return __floats2bfloat162_rn(a, b); }
};

// The numbers, rounded.
template <class T, int N>
__device__ Pack<T, N> narrow(const Compute<T> (&v)[N]) {
  Pack<T, N> pack;
  if constexpr (sizeof(T) == 2 && N % 2 == 0) {
#pragma unroll
    for (int k = 0; k < N; k += 2) {
      const auto pair = PairOf<T>::from(v[k], v[k + 1]);
      pack.v[k] = pair.x;
      pack.v[k + 1] = pair.y;
    }
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k) pack.v[k] = Narrow<T>::from(v[k]);
  }
  return pack;
}

}  // namespace catena::gpu
