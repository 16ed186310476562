// Scratch memory of a sum over the blocks of a grid.
#pragma once

#include <stdint.h>

namespace catena::gpu {

// A number for each block, and a counter that starts at zero; not used where there is one block.
struct GridSum {
  double* sums;
  unsigned* finished;
};

}  // namespace catena::gpu
