// Stands in for src/backends/cuda/common/dynamic_shared.cuh as early_launch.cuh beside it does.
#pragma once

#include "backends/cuda/common/early_launch.cuh"

namespace catena::gpu {
namespace {

std::vector<unsigned char> memory_of_blocks;  // of the running ones
size_t bytes_of_block = 0;

inline unsigned char* dynamic_shared() {
  return memory_of_blocks.data() + place_in_cluster * bytes_of_block;
}
inline void share_memory(unsigned blocks, size_t bytes) {
  memory_of_blocks.assign(blocks * bytes, 0xff);
  bytes_of_block = bytes;
}

template <auto kKernel, class... Args>
void launch_with_shared(dim3 grid, dim3 block, size_t bytes, const Launch& launch,
                        const Args&... args) {
  share_memory(1, bytes);
  launch_kernel<kKernel>(grid, block, launch, args...);
}

}  // namespace
}  // namespace catena::gpu
