// Kernels in a row of which each needs the results of the one before. Those launched early are set
// up while the previous kernel still runs (programmatic dependent launch), which saves one to two
// microseconds each; they wait for it before they read memory. From compute capability 9.0 on.
#pragma once

#include <cuda_runtime.h>

#include <atomic>

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

// Whether the code of the kernel that the device loaded has the wait: on any device it may be code
// for an older one. The answer is kept for each of the first devices; on others no kernel is early.
template <auto kKernel>
bool can_wait(int device) {
  enum : char { kUnknown, kNo, kYes };
  static std::atomic<char> answers[16];
  if (device >= 16) return false;
  char answer = answers[device].load(std::memory_order_relaxed);
  if (answer == kUnknown) {
    cudaFuncAttributes of_kernel{};
    if (cudaFuncGetAttributes(&of_kernel, kKernel) != cudaSuccess) {
      cudaGetLastError();  // the launch will say what is wrong
      return false;
    }
    answer = of_kernel.ptxVersion >= 90 ? kYes : kNo;
    answers[device].store(answer, std::memory_order_relaxed);
  }
  return answer == kYes;
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
  config.numAttrs = begin == Begin::kEarly && can_wait<kKernel>(launch.device) ? 1 : 0;
  cudaLaunchKernelEx(&config, kKernel, args...);  // check_launch() reports its error
}

}  // namespace
}  // namespace catena::gpu
