#include "backends/cudnn/handle.h"

#include <memory>

#include "backends/cuda/companion.h"
#include "backends/cudnn/descriptor.h"

namespace catena::cudnn {

Handle& handle_of(Device device) {
  static auto* handles = new gpu::OncePerDevice<Handle>;
  return handles->of(device.index(), [] {
    auto made = std::make_unique<Handle>();
    CATENA_CUDNN_CHECK(cudnnCreate(&made->native));
    return made.release();
  });
}

}  // namespace catena::cudnn
