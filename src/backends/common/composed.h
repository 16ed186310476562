// Providers that use other slots and therefore serve every device type. Backends register them
// beside their own kernels.
#pragma once

#include "catena/core/device.h"

namespace catena {

// Registers each CATENA_COMPOSED_FAMILY, such as convolutions as products of patches: "products".
void register_composed_kernels(DeviceType type);

}  // namespace catena
