// The providers "onednn" of the convolution slots.
#pragma once

namespace catena::onednn {

// Throws DeviceError if the loaded library has another API than the one compiled against.
void check_version();
void register_convolutions();

}  // namespace catena::onednn
