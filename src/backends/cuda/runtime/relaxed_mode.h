// Calls that CUDA forbids during a capture. Needs CUDA's runtime alone, so that kernels' files and
// the other plug-ins can use it.
#pragma once

#include <cuda_runtime_api.h>

namespace catena::gpu {

// Lets a thread that captures a graph make calls that CUDA otherwise forbids during a capture
// (cudaMalloc, loading of modules, ...). For calls that do not concern the captured streams.
class RelaxedMode {
 public:
  explicit RelaxedMode(bool active = true) : active_(active) {
    if (active_) cudaThreadExchangeStreamCaptureMode(&mode_);
  }
  ~RelaxedMode() {
    if (active_) cudaThreadExchangeStreamCaptureMode(&mode_);
  }
  RelaxedMode(const RelaxedMode&) = delete;
  RelaxedMode& operator=(const RelaxedMode&) = delete;

 private:
  bool active_;
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace catena::gpu
