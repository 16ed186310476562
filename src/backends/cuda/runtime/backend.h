// The backend of GPUs: devices, memory, streams and graphs for the layers above.
#pragma once

namespace catena::gpu {

// Registers it. Its kernels come before, since other threads may then use the device at once.
void register_cuda_backend();

}  // namespace catena::gpu
