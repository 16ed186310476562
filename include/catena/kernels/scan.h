// Running sums and products.
#pragma once

#include "catena/kernels/slot.h"

namespace catena {

class Array;

// Running sums or products along the middle axis of contiguous (outer, n, inner), not empty. The
// input has the output's dtype, or it is bool or an integer and the output int64 or uint64. bool:
// or, and. See cumsum for the precision.
struct ScanCall {
  bool product;
  const Array* input;
  const Array* output;
};

namespace kernels {

// The slots of the calls above.
extern Slot<ScanCall> scan;

}  // namespace kernels

}  // namespace catena
