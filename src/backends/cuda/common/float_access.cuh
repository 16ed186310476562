// Loads and stores of the four floating storage types, converted to the type in which a kernel
// computes, and 16-byte packs of them.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include "device/compute_type.h"

namespace catena::gpu {

template <class T>
using Compute = typename FloatCompute<T>::type;

__device__ inline float widen(float v) { return v; }
__device__ inline double widen(double v) { return v; }
__device__ inline float widen(__half v) { return __half2float(v); }
__device__ inline float widen(__nv_bfloat16 v) { return __bfloat162float(v); }

template <class T>
struct Narrow;
template <>
struct Narrow<float> {
  static __device__ float from(float v) { return v; }
};
template <>
struct Narrow<double> {
  static __device__ double from(double v) { return v; }
};
template <>
struct Narrow<__half> {
  static __device__ __half from(float v) { return __float2half_rn(v); }
};
template <>
struct Narrow<__nv_bfloat16> {
  static __device__ __nv_bfloat16 from(float v) { return __float2bfloat16_rn(v); }
};

template <class T, int N>
struct alignas(N * sizeof(T)) Pack {
  T v[N];
};
template <class T>
constexpr int kPack = 16 / sizeof(T);

}  // namespace catena::gpu

// Runs the statement with `T` as the storage type of a Float code; for use in launch functions.
#define CATENA_FLOAT_SWITCH(code, ...)  \
  switch (code) {                       \
    case ::catena::gpu::Float::kF16: {  \
      using T = __half;                 \
      __VA_ARGS__;                      \
      break;                            \
    }                                   \
    case ::catena::gpu::Float::kBf16: { \
      using T = __nv_bfloat16;          \
      __VA_ARGS__;                      \
      break;                            \
    }                                   \
    case ::catena::gpu::Float::kF32: {  \
      using T = float;                  \
      __VA_ARGS__;                      \
      break;                            \
    }                                   \
    case ::catena::gpu::Float::kF64: {  \
      using T = double;                 \
      __VA_ARGS__;                      \
      break;                            \
    }                                   \
  }
