// Softmax and its gradient.
#pragma once

#include "catena/kernels/slot.h"

namespace catena {

class Array;

// y = softmax(x), or its logarithm, over the classes of contiguous (outer, classes, inner) floats.
struct SoftmaxCall {
  const Array& x;
  bool log;
  const Array& y;
};

// gx of the same softmax, from its result y and the gradient gy.
struct SoftmaxGradCall {
  const Array& y;
  const Array& gy;
  bool log;
  const Array& gx;
};

namespace kernels {

// The slots of the calls above.
extern Slot<SoftmaxCall> softmax;
extern Slot<SoftmaxGradCall> softmax_grad;

}  // namespace kernels

}  // namespace catena
