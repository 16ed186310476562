// Kernels in a row of which each needs the results of the one before. Those launched early are set
// up while the previous kernel still runs (programmatic dependent launch), which saves one to two
// microseconds each; they wait for it before they read memory. From compute capability 9.0 on.
#pragma once

#include <cuda_runtime.h>

#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {
namespace {

// The first statement of each kernel that may be launched early. Waits until all work of the
// previous kernel is done and visible.
__device__ inline void wait_for_previous_kernel() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// Whether the kernel was compiled with the wait: code for an older GPU may run on a newer one.
template <auto kKernel>
bool can_wait() {
  static const bool answer = [] {
    cudaFuncAttributes of_kernel{};
    return cudaFuncGetAttributes(&of_kernel, kKernel) == cudaSuccess && of_kernel.ptxVersion >= 90;
  }();
  return answer;
}

// When a kernel may be set up. kEarly only directly after another kernel of the same stream: a
// captured graph has no such edges from copies or other streams.
enum class Begin : bool { kInTurn, kEarly };

template <auto kKernel, class... Args>
void launch_kernel(Begin begin, dim3 grid, int threads, const Launch& launch, const Args&... args) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(unsigned(threads));
  config.stream = launch.stream;
  config.attrs = &early;
  config.numAttrs =
      begin == Begin::kEarly && launch.can_overlap_kernels && can_wait<kKernel>() ? 1 : 0;
  cudaLaunchKernelEx(&config, kKernel, args...);  // check_launch() reports its error
}

}  // namespace
}  // namespace catena::gpu
