// Philox blocks in device code.
#pragma once

#define CATENA_FN __host__ __device__ inline
#include "device/philox.h"

#include "backends/cuda/random/random.h"

namespace catena::gpu {

// Calls f(i, block of element i) for every element of the range.
template <class F>
__device__ void for_blocks(const RandomSource& source, int64_t count, F f) {
  const uint64_t seed = source.base ? source.base[0] : source.seed;
  const uint64_t first = source.offset + (source.base ? source.base[1] : 0);
  const int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    f(i, philox::block(seed, first + uint64_t(i)));
  }
}

}  // namespace catena::gpu
