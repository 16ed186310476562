// Check of the loaded library for the entry point.
#pragma once

namespace catena::onednn {

// Throws DeviceError if the loaded library has another API than the one compiled against.
void check_version();

}  // namespace catena::onednn
