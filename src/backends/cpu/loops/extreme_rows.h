// Table of the loops of maxima and minima of short rows and of their gradients, compiled once for
// each x86-64 level. See tables.h for what it may include.
#pragma once

#include <cstdint>

#include "backends/cpu/loops/levels.h"

namespace catena::host {

// Rows of up to this many elements are short. float64 has none of more than half as many: longer
// ones are taken in lanes, whose choice between 0 and -0 is another one (extreme.h).
inline constexpr int64_t kShortExtremeRow = 15;

// Of one storage type.
struct ExtremeLoops {
  // y[r]: the smallest, [1] the largest, of the n elements of row r, NaN if there is one. Rows are
  // adjacent.
  void (*short_rows[2])(const void* x, int64_t rows, int64_t n, void* y);
  // gx = x == y[r] ? gy[r] : 0 of rows of n elements, which are adjacent.
  void (*rows_gradient)(const void* x, const void* y, const void* gy, int64_t rows, int64_t n,
                        void* gx);
  // gx = x == y ? gy : 0 of n elements.
  void (*gradient)(const void* x, const void* y, const void* gy, int64_t n, void* gx);
};

using ExtremeTables = LoopsOfFloats<ExtremeLoops>;
CATENA_DECLARE_LOOPS(ExtremeTables)

}  // namespace catena::host
