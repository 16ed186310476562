// Shared memory whose size the launch gives, beyond what every kernel may use if need be.
#pragma once

#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/runtime/relaxed_mode.h"

namespace catena::gpu {
namespace {

// The block's memory, aligned to 16 bytes.
__device__ inline unsigned char* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char dynamic_shared_memory[];
  return dynamic_shared_memory;
}

// Allows launches of the kernel with so many bytes of that memory, where as many blocks as fit run
// at a time.
template <auto kKernel>
cudaError_t allow_shared(size_t bytes) {
  const RelaxedMode relaxed;  // the calls may load the kernel
  cudaFuncSetAttribute(kKernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                       cudaSharedmemCarveoutMaxShared);
  return cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(bytes));
}

// As launch_kernel, with `bytes` of that memory, at most DeviceInfo::max_shared_memory less what
// the kernel declares.
template <auto kKernel, class... Args>
void launch_with_shared(dim3 grid, dim3 block, size_t bytes, const Launch& launch,
                        const Args&... args) {
  constexpr size_t kWithoutAsking = 48 << 10;
  if (bytes > kWithoutAsking) allow_shared<kKernel>(bytes);
  launch_sized<kKernel>(grid, block, bytes, launch, args...);
}

}  // namespace
}  // namespace catena::gpu
