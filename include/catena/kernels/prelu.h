// Gradients of a rectifier whose slopes are learned.
#pragma once

#include "catena/kernels/slot.h"

namespace catena {

class Array;

// x, gy and gx are contiguous (outer, channels, inner), W and gW contiguous (channels), all of one
// floating dtype. gx = x >= 0 ? gy : gy * W[channel]; gW is the sum of gy * x over a channel's
// elements with x < 0, and NaN where one of them is.
struct PreluGradCall {
  const Array& x;
  const Array& gy;
  const Array& W;
  const Array& gx;
  const Array& gW;
};

namespace kernels {

// The slot of the call above.
extern Slot<PreluGradCall> prelu_grad;

}  // namespace kernels

}  // namespace catena
