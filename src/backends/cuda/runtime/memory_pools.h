// The pools of the GPUs and of pinned host memory.
#pragma once

#include "backends/cuda/runtime/pool.h"

namespace catena::gpu {

Pool& device_pool(int index);
Pool& pinned_pool();

// On the calling thread's current stream of the GPU, or from the graph it records.
StoragePtr allocate_device(int index, size_t bytes);
// By cudaMalloc; cudaFree, which waits for the device, when the last reference goes.
StoragePtr allocate_unpooled(int index, size_t bytes);
// Page-locked memory that belongs to the CPU device. Free to write at once: a block is handed out
// only when no GPU reads it any more.
StoragePtr allocate_pinned(Device cpu_device, size_t bytes);
void record_use(const Storage& storage, const Stream& stream);

}  // namespace catena::gpu
