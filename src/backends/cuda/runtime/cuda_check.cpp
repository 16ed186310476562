#include "backends/cuda/runtime/cuda_check.h"

namespace catena::gpu {

std::string describe_cuda_error(cudaError_t error) {
  return message(cudaGetErrorName(error), ": ", cudaGetErrorString(error));
}

void fail_cuda(cudaError_t error, const char* call) {
  cudaGetLastError();  // a non-sticky error must not appear in the next, unrelated check
  if (error == cudaErrorMemoryAllocation) {
    fail<OutOfMemoryError>("CUDA call failed: ", call, ": ", describe_cuda_error(error));
  }
  if (error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread) {
    fail<DeviceError>("CUDA call failed: ", call, ": ", describe_cuda_error(error),
                      "; a CUDA graph is being captured, move this call out of the captured step");
  }
  fail<DeviceError>("CUDA call failed: ", call, ": ", describe_cuda_error(error));
}

void check_launch(const char* kernel) {
  const cudaError_t error = cudaPeekAtLastError();
  if (error != cudaSuccess) [[unlikely]] {
    cudaGetLastError();
    fail<DeviceError>("launch of the CUDA kernel '", kernel,
                      "' failed: ", describe_cuda_error(error));
  }
}

}  // namespace catena::gpu
