// Gradients of the largest or smallest elements along an axis.
#pragma once

#include "catena/kernels/slot.h"

namespace catena {

class Array;

// x and gx are contiguous (outer, n, inner), y and gy contiguous (outer, inner), all of one
// floating dtype and not empty. gx = x == y ? gy : 0 along the axis of n: each element that equals
// the extreme has its gradient, NaN has none.
struct ExtremeGradCall {
  const Array& x;
  const Array& y;
  const Array& gy;
  const Array& gx;
};

namespace kernels {

// The slot of the call above.
extern Slot<ExtremeGradCall> extreme_grad;

}  // namespace kernels

}  // namespace catena
