// Elements of a SumType in registers: a pack of 16 bytes as float32, and packed again.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "sum_type.h"

namespace catena::comm::nccl {
namespace {

// The elements of a pack, as float32 and back. The sum of 16-bit elements is rounded once.
template <class T>
struct Elements {
  static constexpr int kCount = kPackBytes / sizeof(T);
  float of[kCount];
  __device__ explicit Elements(const uint4& pack) {
    const T* from = reinterpret_cast<const T*>(&pack);
#pragma unroll
    for (int k = 0; k < kCount; ++k) of[k] = static_cast<float>(from[k]);
  }
  __device__ uint4 pack() const {
    uint4 result;
    T* to = reinterpret_cast<T*>(&result);
#pragma unroll
    for (int k = 0; k < kCount; ++k) to[k] = static_cast<T>(of[k]);
    return result;
  }
};

}  // namespace
}  // namespace catena::comm::nccl
