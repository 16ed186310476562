// Scratch memory of a sum over the blocks of a grid.
#pragma once

#include <stdint.h>

namespace catena::gpu {

// A sum for each block, and a counter that starts at zero; not used where there is one block.
template <class T>
struct GridSums {
  T* sums;
  unsigned* finished;
};
using GridSum = GridSums<double>;

}  // namespace catena::gpu
