// Philox blocks in device code.
#pragma once

#define CATENA_FN __host__ __device__ inline
#include "device/philox.h"

#include "backends/cuda/random/random.h"

namespace catena::gpu {

// The blocks of a source, counted from its first one.
struct Blocks {
  uint64_t seed, first;

  __device__ explicit Blocks(const RandomSource& source)
      : seed(source.base ? source.base[0] : source.seed),
        first(source.offset + (source.base ? source.base[1] : 0)) {}
  __device__ philox::Block operator[](int64_t i) const {
    return philox::block(seed, first + uint64_t(i));
  }
};

// Calls f(i, block of element i) for every element of the range.
template <class F>
__device__ void for_blocks(const RandomSource& source, int64_t count, F f) {
  const Blocks blocks(source);
  const int64_t stride = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    f(i, blocks[i]);
  }
}

}  // namespace catena::gpu
