// The visible GPUs and the calling thread's current one.
#pragma once

#include <cstddef>
#include <string>

#include "catena/core/device.h"

namespace catena::gpu {

// What kernels' host code asks of a device, read once.
struct DeviceInfo {
  std::string model;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  size_t total_memory = 0;
  int max_shared_memory = 0;  // bytes a block may opt into
};

// Number of GPUs; 0 when there is no driver or no device, and then `no_device_reason()` says why.
// Never throws.
int device_count();
const std::string& no_device_reason();
// Throws DeviceError when the index is not one of the visible GPUs.
const DeviceInfo& device_info(int index);

// Makes the GPU the calling thread's current one. CUDA is called only when it changes, so that host
// code of every launch may call this. Code that calls CUDA itself switches by
// Backend::make_current, or changes the device back.
void use_device(int index);

// Makes a GPU current for a scope. Usable where nothing may throw: a failure to switch (the driver
// is shutting down) shows in the call that follows.
class UseDevice {
 public:
  explicit UseDevice(int index) noexcept;
  ~UseDevice();
  UseDevice(const UseDevice&) = delete;
  UseDevice& operator=(const UseDevice&) = delete;

 private:
  int previous_;
};

}  // namespace catena::gpu
