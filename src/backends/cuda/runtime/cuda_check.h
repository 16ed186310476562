// Turns error codes of the CUDA runtime into exceptions that carry CUDA's own text.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "catena/core/error.h"

namespace catena::gpu {

// Throws DeviceError (OutOfMemoryError for cudaErrorMemoryAllocation) with the call, CUDA's name
// and text of the error, and what is known of its cause: who has the memory, which user kernels may
// have failed. Clears the runtime's pending error.
[[noreturn, gnu::cold]] void fail_cuda(cudaError_t error, const char* call);
// "cudaErrorNoDevice: no CUDA-capable device is detected"
std::string describe_cuda_error(cudaError_t error);

// After a kernel launch: an error of the launch itself, without waiting for the kernel.
void check_launch(const char* kernel);

}  // namespace catena::gpu

// CATENA_CUDA_CHECK(cudaMemcpyAsync(...));
#define CATENA_CUDA_CHECK(call)                           \
  do {                                                    \
    const cudaError_t catena_cuda_error = (call);         \
    if (catena_cuda_error != cudaSuccess) [[unlikely]]    \
      ::catena::gpu::fail_cuda(catena_cuda_error, #call); \
  } while (false)
