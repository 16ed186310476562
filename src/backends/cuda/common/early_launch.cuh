// Launches of kernels that are set up while the kernel before them in the stream still ends
// (programmatic dependent launch, where DeviceInfo::early_launches), which saves 0.2 to 0.5 us
// each. They wait for it before they read memory. After a copy or an event, and in a captured graph
// after a node that is not a kernel, CUDA starts them one after the other.
#pragma once

#include <cuda_runtime.h>

#include <atomic>

#include "backends/cuda/runtime/launch.h"
#include "backends/cuda/runtime/relaxed_mode.h"

namespace catena::gpu {
namespace {

// The first statement of each kernel that launch_kernel() launches. Waits until all work of the
// previous kernel is done and visible.
__device__ inline void wait_for_previous_kernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// Whether the code of the kernel that the device loaded is for GPUs of this compute capability (90:
// 9.0) or newer: on any device it may be code for an older one. The device is current. The answer
// is kept for each of the first devices; on others it is no.
template <auto kKernel, int kCapability>
bool is_code_for(int device) {
  enum : char { kUnknown, kNo, kYes };
  static std::atomic<char> answers[16];
  if (device >= 16) return false;
  char answer = answers[device].load(std::memory_order_relaxed);
  if (answer == kUnknown) {
    const RelaxedMode relaxed;  // the query may load the kernel
    cudaFuncAttributes of_kernel{};
    if (cudaFuncGetAttributes(&of_kernel, kKernel) != cudaSuccess) {
      cudaGetLastError();  // the launch will say what is wrong
      return false;
    }
    answer = of_kernel.ptxVersion >= kCapability ? kYes : kNo;
    answers[device].store(answer, std::memory_order_relaxed);
  }
  return answer == kYes;
}

// The launch, with `bytes` of shared memory beside what the kernel declares.
template <auto kKernel, class... Args>
void launch_sized(dim3 grid, dim3 block, size_t bytes, const Launch& launch, const Args&... args) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = bytes;
  config.stream = launch.stream;
  config.attrs = &early;
  config.numAttrs = launch.early && is_code_for<kKernel, 90>(launch.device) ? 1 : 0;
  cudaLaunchKernelEx(&config, kKernel, args...);  // check_launch() reports its error
}

template <auto kKernel, class... Args>
void launch_kernel(dim3 grid, dim3 block, const Launch& launch, const Args&... args) {
  launch_sized<kKernel>(grid, block, 0, launch, args...);
}

}  // namespace
}  // namespace catena::gpu
