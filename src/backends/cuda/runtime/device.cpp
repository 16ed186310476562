#include "backends/cuda/runtime/device.h"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <vector>

#include "backends/cuda/runtime/cuda_check.h"

namespace catena::gpu {
namespace {

struct Devices {
  std::vector<DeviceInfo> list;
  std::string reason;
};

int attribute(cudaDeviceAttr what, int index) {
  int value = 0;
  CATENA_CUDA_CHECK(cudaDeviceGetAttribute(&value, what, index));
  return value;
}

DeviceInfo read_info(int index) {
  cudaDeviceProp properties;
  CATENA_CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
  DeviceInfo info;
  info.model = properties.name;
  info.major = properties.major;
  info.minor = properties.minor;
  info.multiprocessors = properties.multiProcessorCount;
  info.total_memory = properties.totalGlobalMem;
  info.max_shared_memory = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, index);
  int driver = 0;
  CATENA_CUDA_CHECK(cudaDriverGetVersion(&driver));
  info.early_launches = info.major >= 9 && driver >= 13000;
  return info;
}

Devices find_devices() {
  Devices found;
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (error == cudaErrorInsufficientDriver) {
    int driver = 0;
    cudaDriverGetVersion(&driver);
    found.reason = driver == 0
                       ? "no CUDA driver is installed on this machine (libcuda.so.1 was not found)"
                       : message("the CUDA driver is too old: it supports CUDA ", driver / 1000,
                                 ".", driver % 1000 / 10, ", this build needs ",
                                 CUDART_VERSION / 1000, ".", CUDART_VERSION % 1000 / 10);
  } else if (error != cudaSuccess) {
    found.reason =
        message("no CUDA driver or device can be used (", describe_cuda_error(error), ")");
    if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"))
      found.reason += message("; CUDA_VISIBLE_DEVICES is '", visible, "'");
  } else if (count == 0) {
    found.reason = "the CUDA driver reports no GPU";
  }
  if (!found.reason.empty()) return found;
  if (count > kMaxDevices) count = kMaxDevices;
  try {
    for (int i = 0; i < count; ++i) found.list.push_back(read_info(i));
  } catch (const std::exception& e) {
    found.list.clear();
    found.reason = message("the GPUs of this machine cannot be queried: ", e.what());
  }
  return found;
}

const Devices& devices() {
  static const Devices found = find_devices();
  return found;
}

thread_local int t_device = -1;  // -1: nothing set by this thread yet

}  // namespace

int device_count() { return static_cast<int>(devices().list.size()); }

const std::string& no_device_reason() { return devices().reason; }

const DeviceInfo& device_info(int index) {
  const Devices& found = devices();
  CATENA_CHECK(DeviceError, !found.list.empty(), "cuda:", index, " cannot be used: ", found.reason);
  CATENA_CHECK(DeviceError, index >= 0 && index < device_count(), "cuda:", index,
               " does not exist: this machine has ", device_count(), " visible GPU(s)");
  return found.list[static_cast<size_t>(index)];
}

void use_device(int index) {
  if (t_device == index) [[likely]]
    return;
  device_info(index);
  CATENA_CUDA_CHECK(cudaSetDevice(index));
  t_device = index;
}

UseDevice::UseDevice(int index) noexcept : previous_(t_device) {
  if (t_device != index && cudaSetDevice(index) == cudaSuccess) t_device = index;
}

UseDevice::~UseDevice() {
  if (previous_ >= 0 && previous_ != t_device && cudaSetDevice(previous_) == cudaSuccess) {
    t_device = previous_;
  }
}

}  // namespace catena::gpu
