// Stands in for src/backends/cuda/common/early_launch.cuh where a test compiles a .cu for the host:
// a launch runs the kernel for one thread after the other. For kernels whose threads do not meet.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "backends/cuda/runtime/launch.h"

#undef __global__
#undef __device__
#undef __host__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)

namespace catena::gpu {
namespace {

dim3 gridDim, blockDim, blockIdx, threadIdx;

inline void wait_for_previous_kernel() {}

template <auto kKernel, class... Args>
void launch_kernel(dim3 grid, dim3 block, const Launch&, const Args&... args) {
  gridDim = grid, blockDim = block;
  for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < block.x; ++threadIdx.x) kKernel(args...);
}

}  // namespace
}  // namespace catena::gpu
