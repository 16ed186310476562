// The visible GPUs and the calling thread's current one.
#pragma once

#include <cstddef>
#include <string>

#include "catena/core/device.h"

namespace catena::gpu {

// What host code of kernels needs to know about a device, read once.
struct DeviceInfo {
  std::string model;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  size_t total_memory = 0;
  int max_shared_memory = 0;  // bytes that a block may opt into
  // Whether kernels that wait for the one before them may be launched before it has ended, in
  // captured graphs too: compute capability 9.0 and a driver for CUDA 13, the first tried.
  bool early_launches = false;
};

// The number of GPUs; 0 if there is no driver or no device. no_device_reason() then says why. Never
// throws.
int device_count();
const std::string& no_device_reason();
// Throws DeviceError if the index is not one of the visible GPUs.
const DeviceInfo& device_info(int index);

// Makes the GPU the calling thread's current one. It calls CUDA only if the GPU changes, so the
// host code of every launch may call it. Code that calls CUDA directly switches with
// Backend::make_current, or restores the device.
void use_device(int index);

// Makes a GPU current for a scope. May be used where nothing may throw: if switching fails (the
// driver is shutting down), the next CUDA call reports it.
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
