// Access to CUDA's runtime for the other plug-ins. It uses nothing of libcatena_cuda, so that they
// can include it without being linked to it; tests/layers_test allows them this one header.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <mutex>

#include "backends/cuda/runtime/relaxed_mode.h"
#include "catena/core/backend.h"

namespace catena::gpu {

// The calling thread's current stream of a GPU. Makes the GPU the thread's current device.
inline cudaStream_t companion_stream(Device device) {
  backend(device.type()).make_current(device.index());
  return static_cast<cudaStream_t>(current_native_stream(device));
}

// Memory of the GPU for one call. It may be released as soon as the work is enqueued, because later
// work of the stream waits for that work anyway. While a graph is captured it comes from the
// graph's own memory.
inline StoragePtr scratch_memory(Device device, size_t bytes) {
  return bytes > 0 ? allocate(device, bytes) : StoragePtr();
}

// An object that all threads share, one for each GPU, such as a library's handle. It is made at its
// first use and never destroyed, because arrays and streams may outlive static objects.
template <class T>
class OncePerDevice {
 public:
  // make() returns a pointer from new and may throw; the GPU is the thread's current device.
  template <class Make>
  T& of(int device, Make make) {
    if (T* found = made_[device].load(std::memory_order_acquire)) [[likely]]
      return *found;
    std::lock_guard lock(mutex_);
    if (T* found = made_[device].load(std::memory_order_acquire)) return *found;
    RelaxedMode relaxed;
    T* made = make();
    made_[device].store(made, std::memory_order_release);
    return *made;
  }

 private:
  std::mutex mutex_;
  std::atomic<T*> made_[kMaxDevices] = {};
};

}  // namespace catena::gpu
