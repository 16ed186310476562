// Architectures of this machine's GPUs, according to the driver.
#pragma once

#include <vector>

namespace catena::jit {

// The architectures of the visible GPUs, for example {90}, each once. Throws DeviceError, which
// says what to do, if there is no driver or no GPU.
std::vector<int> gpu_archs();

}  // namespace catena::jit
