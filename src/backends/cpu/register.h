// Entry point of the built-in CPU backend's kernels.
#pragma once

namespace catena {

// Provides every slot for DeviceType::kCpu under the provider name "cpu".
void register_cpu_kernels();

}  // namespace catena
