// The providers "cudnn" of the convolution slots.
#pragma once

namespace catena::cudnn {

void register_convolutions();

}  // namespace catena::cudnn
