// Entry of the CPU backend: fills every slot for DeviceType::kCpu.
#pragma once

namespace catena {

void register_cpu_kernels();

}  // namespace catena
