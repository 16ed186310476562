#include "backends/cudnn/handle.h"

#include <memory>

#include "backends/cuda/companion.h"
#include "backends/cudnn/descriptor.h"
#include "catena/core/error.h"

namespace catena::cudnn {

Handle& handle_of(Device device) {
  static auto* handles = new gpu::OncePerDevice<Handle>;
  return handles->of(device.index(), [] {
    auto made = std::make_unique<Handle>();
    try {
      CATENA_CUDNN_CHECK(cudnnCreate(&made->native));
    } catch (const NotSupported&) {  // of a call; here it is the GPU or the driver
      fail<DeviceError>(
          "cuDNN cannot be used on this GPU (CATENA_LOG=debug shows its reason); "
          "CATENA_PROVIDERS=cudnn:off computes without cuDNN");
    }
    return made.release();
  });
}

}  // namespace catena::cudnn
