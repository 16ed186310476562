// Asks the driver for the GPUs of this machine. See gpu_archs.h.
#include "backends/cuda/jit/tool/gpu_archs.h"

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>

#include "backends/cuda/jit/compile/function_lookup.h"
#include "catena/core/error.h"

namespace catena::jit {

namespace {

struct Driver {
  decltype(&cuInit) init = nullptr;
  decltype(&cuDeviceGetCount) count = nullptr;
  decltype(&cuDeviceGetAttribute) attribute = nullptr;
};

[[noreturn]] void no_gpu(const std::string& reason) {
  fail<DeviceError>("no GPU to prepare kernels for: ", reason,
                    "; run this on the machine that has the GPUs, or name their architecture "
                    "(catena-kernels --prepare --arch 90)");
}

Driver open_driver() {
  void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) no_gpu(std::string("the NVIDIA driver does not load: ") + dlerror());
  Driver driver;
  FunctionLookup functions([handle](const char* name) { return dlsym(handle, name); });
  functions.get(driver.init, "cuInit");
  functions.get(driver.count, "cuDeviceGetCount");
  functions.get(driver.attribute, "cuDeviceGetAttribute");
  if (!functions.missing().empty()) no_gpu("the NVIDIA driver has no " + functions.missing());
  return driver;
}

}  // namespace

std::vector<int> gpu_archs() {
  const Driver driver = open_driver();
  int count = 0;
  if (const CUresult error = driver.init(0); error != CUDA_SUCCESS)
    no_gpu("the NVIDIA driver answers with error " + std::to_string(error));
  if (driver.count(&count) != CUDA_SUCCESS || count == 0)
    no_gpu("the NVIDIA driver sees none (CUDA_VISIBLE_DEVICES may hide them)");
  std::vector<int> archs;
  for (CUdevice device = 0; device < count; ++device) {
    int major = 0, minor = 0;
    driver.attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    driver.attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    const int arch = major * 10 + minor;
    if (std::find(archs.begin(), archs.end(), arch) == archs.end()) archs.push_back(arch);
  }
  return archs;
}

}  // namespace catena::jit
