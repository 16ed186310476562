#include "backends/cuda/runtime/cuda_check.h"

#include "backends/cuda/runtime/device_users.h"
#include "backends/cuda/runtime/faults.h"

namespace catena::gpu {

std::string describe_cuda_error(cudaError_t error) {
  return message(cudaGetErrorName(error), ": ", cudaGetErrorString(error));
}

namespace {

// "; " and who has the memory of the current GPU, if that is known.
std::string describe_full_device() {
  int device = 0;
  cudaGetDevice(&device);
  const std::string text = describe_memory(device);
  return text.empty() ? text : "; " + text;
}

}  // namespace

void fail_cuda(cudaError_t error, const char* call) {
  cudaGetLastError();  // a non-sticky error must not appear in the next, unrelated check
  let_process_end(error);
  if (error == cudaErrorMemoryAllocation) {
    fail<OutOfMemoryError>("CUDA call failed: ", call, ": ", describe_cuda_error(error),
                           describe_full_device());
  }
  if (error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread) {
    fail<DeviceError>("CUDA call failed: ", call, ": ", describe_cuda_error(error),
                      "; a CUDA graph is being captured, move this call out of the captured step");
  }
  fail<DeviceError>("CUDA call failed: ", call, ": ", describe_cuda_error(error),
                    describe_fault(error));
}

void check_launch(const char* kernel) {
  const cudaError_t error = cudaPeekAtLastError();
  if (error != cudaSuccess) [[unlikely]] {
    cudaGetLastError();
    let_process_end(error);
    fail<DeviceError>("launch of the CUDA kernel '", kernel,
                      "' failed: ", describe_cuda_error(error), describe_fault(error));
  }
}

}  // namespace catena::gpu
