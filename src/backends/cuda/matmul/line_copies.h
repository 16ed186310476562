// Copies of matrices to other alignments and longer rows, for products of odd extents.
#pragma once

#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

// Lines of a batch of matrices, and where they go; all in bytes, multiples of 2. What `to` has of a
// line, and of lines, more than `from` becomes 0; what it has less is left out.
struct LineCopy {
  struct Place {
    char* data;
    int64_t line;  // bytes
    int64_t lines;
    int64_t step, batch_step;  // from one line, and from one matrix, to the next
  };
  Place from, to;
  int64_t batch;
};

constexpr int kMostLineCopies = 4;

// Several at once, which may not overlap; fewer than 2^31 packs of 16 bytes each.
void launch_line_copies(const LineCopy* copies, int count, const Launch& launch);

}  // namespace catena::gpu
