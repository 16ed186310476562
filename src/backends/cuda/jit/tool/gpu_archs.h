// Which GPUs this machine has, asked of the driver.
#pragma once

#include <vector>

namespace catena::jit {

// Architectures of the visible GPUs, e.g. {90}, each once. DeviceError, with what to do, when there
// is no driver or no GPU.
std::vector<int> gpu_archs();

}  // namespace catena::jit
