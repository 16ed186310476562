// Plain types shared by hand-written kernels (.cu) and their host glue (.cpp).
#pragma once

#include <cuda_runtime_api.h>
#include <stdint.h>

namespace catena::gpu {

// Storage type of a kernel's floating elements.
enum class Float : uint8_t { kF16, kBf16, kF32, kF64 };

// The stream and device of a launch.
struct Launch {
  cudaStream_t stream;
  int multiprocessors;
  int device;  // the index, which is the current one
  bool early;  // see DeviceInfo::early_launches
};

// The number of blocks for a grid-stride loop over `count` elements, where a block takes
// `per_block` of them at a time: at most `most` blocks for each multiprocessor.
inline unsigned loop_blocks(int64_t count, int64_t per_block, const Launch& launch, int most = 16) {
  const int64_t wanted = (count + per_block - 1) / per_block,
                fitting = int64_t(launch.multiprocessors) * most;
  return unsigned(wanted < fitting ? wanted : fitting);
}

}  // namespace catena::gpu
