// cuDNN's handles, one for each GPU.
#pragma once

#include <cudnn_graph.h>

#include <mutex>

#include "catena/core/device.h"

namespace catena::cudnn {

// A handle serves one thread at a time, because it holds the stream of the call.
struct Handle {
  cudnnHandle_t native = nullptr;
  std::mutex mutex;  // held during a launch, or while a plan is made
};

// The GPU is the thread's current device.
Handle& handle_of(Device device);

}  // namespace catena::cudnn
