// Plain types shared by hand-written kernels (.cu) and their host glue (.cpp).
#pragma once

#include <cuda_runtime_api.h>
#include <stdint.h>

namespace catena::gpu {

// Storage type of a kernel's floating elements.
enum class Float : uint8_t { kF16, kBf16, kF32, kF64 };

// Where a kernel runs.
struct Launch {
  cudaStream_t stream;
  int multiprocessors;
};

}  // namespace catena::gpu
