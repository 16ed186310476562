// The sum over all threads of a grid, in one launch and always in the same order: the last block to
// finish adds the sums of all blocks.
#pragma once

#include "backends/cuda/common/block_reduce.cuh"
#include "backends/cuda/loss/grid_sum.h"

namespace catena::gpu {

// Called by all threads of all blocks of 32 to 1024 threads, a power of two. f(sum) runs in one
// thread of the last block.
template <class F>
__device__ void grid_sum(double own, const GridSum& scratch, F f) {
  __shared__ double sums[32];
  __shared__ bool last;
  own = block_reduce(own, AddOp(), sums);
  if (gridDim.x > 1) {
    if (threadIdx.x == 0) {
      scratch.sums[blockIdx.x] = own;
      __threadfence();
      last = atomicAdd(scratch.finished, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    own = 0;
    const volatile double* all = scratch.sums;
    for (unsigned b = threadIdx.x; b < gridDim.x; b += blockDim.x) own += all[b];
    own = block_reduce(own, AddOp(), sums);
  }
  if (threadIdx.x == 0) f(own);
}

}  // namespace catena::gpu
