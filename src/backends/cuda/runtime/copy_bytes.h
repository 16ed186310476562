// Byte copies between host and GPUs, and between GPUs.
#pragma once

#include <cstddef>

#include "catena/core/stream.h"

namespace catena::gpu {

// See Backend::copy_bytes.
void copy_bytes(void* dst, Device dst_device, const void* src, Device src_device, size_t bytes,
                const Stream& stream);

// Whether GPU `index` reads the memory of GPU `peer` directly. The first call enables the access.
// False if the hardware cannot do it, and with CATENA_P2P=0.
bool peer_access(int index, int peer);
// Whether peer_access could enable access; enables nothing.
bool can_reach_peer(int index, int peer);

}  // namespace catena::gpu
