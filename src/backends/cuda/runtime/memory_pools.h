// The pools of the GPUs and of pinned host memory.
#pragma once

#include "backends/cuda/runtime/pool.h"

namespace catena::gpu {

Pool& device_pool(int index);
Pool& pinned_pool();

// Memory for the calling thread's current stream of the GPU, or from the graph that the thread
// captures.
StoragePtr allocate_device(int index, size_t bytes);
// Memory from cudaMalloc. When the last reference is dropped it is freed with cudaFree, which waits
// for the device.
StoragePtr allocate_unpooled(int index, size_t bytes);
// Page-locked memory that belongs to the CPU device. It may be written at once: a block is only
// handed out when no GPU reads it any more.
StoragePtr allocate_pinned(Device cpu_device, size_t bytes);
void record_use(const Storage& storage, const Stream& stream);

}  // namespace catena::gpu
