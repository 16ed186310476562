// Entry points of libcatena_cuda: they register the backend and the providers of every slot.
#include "catena/core/plugin.h"

#include "backends/common/composed.h"
#include "backends/cuda/jit/register.h"
#include "backends/cuda/register.h"
#include "backends/cuda/runtime/device.h"
#include "catena/core/error.h"

// Registers the providers alone, which needs no GPU: the completeness test asks for them on any
// machine.
extern "C" __attribute__((visibility("default"))) void catena_plugin_kernels() {
  using namespace catena;
  gpu::register_matmul_kernels();
  gpu::register_optimizer_kernels();
  gpu::register_softmax_kernels();
  gpu::register_loss_kernels();
  gpu::register_indexing_kernels();
  gpu::register_select_kernels();
  gpu::register_random_kernels();
  gpu::register_sort_kernels();
  gpu::register_scan_kernels();
  gpu::register_counting_kernels();
  gpu::register_patch_kernels();
  gpu::register_normalization_kernels();
  register_composed_kernels(DeviceType::kCuda);
  register_jit_kernels();
}

CATENA_PLUGIN(cuda) {
  using namespace catena;
  CATENA_CHECK(DeviceError, gpu::device_count() > 0, gpu::no_device_reason());
  catena_plugin_kernels();  // before the backend, through which other threads find the device
  gpu::register_cuda_backend();
}
