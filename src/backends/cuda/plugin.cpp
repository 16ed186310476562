// Entry points of libcatena_cuda: they register the backend and the families of its kernels. See
// common/family.h.
#include "catena/core/plugin_entry.h"

#include "backends/common/composed.h"
#include "backends/cuda/runtime/backend.h"
#include "backends/cuda/runtime/capture.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/runtime/faults.h"
#include "backends/cuda/trace/tracer.h"
#include "catena/core/error.h"

namespace catena::families {
#define CATENA_ITEM(name) void cuda_##name();
#include "lists/cuda_families.inc"
#undef CATENA_ITEM
}  // namespace catena::families

// Registers the providers alone, which needs no GPU: the completeness test asks for them on any
// machine.
extern "C" __attribute__((visibility("default"))) void catena_plugin_kernels() {
  using namespace catena;
#define CATENA_ITEM(name) families::cuda_##name();
#include "lists/cuda_families.inc"
#undef CATENA_ITEM
  register_composed_kernels(DeviceType::kCuda);
}

// How many kernels, and how many copies and fills, the calling thread's capture has recorded so
// far. False if it captures nothing. For tests that count what a function launches.
extern "C" __attribute__((visibility("default"))) bool catena_plugin_recorded_work(int* kernels,
                                                                                   int* transfers) {
  if (catena::gpu::thread_capture() == nullptr) return false;
  const catena::gpu::RecordedWork work = catena::gpu::recorded_work();
  *kernels = work.kernels;
  *transfers = work.transfers;
  return true;
}

CATENA_PLUGIN(cuda) {
  using namespace catena;
  CATENA_CHECK(DeviceError, gpu::device_count() > 0, gpu::no_device_reason());
  gpu::watch_exit();
  catena_plugin_kernels();  // before the backend, through which other threads find the device
  gpu::register_cuda_backend();
  gpu::register_tracer();
}
