// Positions of index arrays on the GPU.
#pragma once

#include <stdint.h>

namespace catena::gpu {

// A position as one inside [0, extent): clipped, or counted from the end and wrapped around.
template <class I>
__device__ inline int64_t resolve(I position, int64_t extent, bool clip) {
  int64_t p = position;
  if (p >= 0 && p < extent) return p;
  if (clip) return p < 0 ? 0 : extent - 1;
  if (p < 0 && p >= -extent) return p + extent;
  p %= extent;
  return p < 0 ? p + extent : p;
}

}  // namespace catena::gpu
