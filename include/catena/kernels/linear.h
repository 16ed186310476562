// What surrounds the product of a linear layer: an activation behind it, and backward the gradient
// through that activation together with the gradient of the bias.
#pragma once

#include <cstdint>

#include "catena/kernels/slot.h"

namespace catena {

class Array;

// max(x, 0), x Phi(x) with the normal distribution function Phi, and the approximation
// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
enum class LinearActivation : uint8_t { kRelu, kGelu, kGeluTanh };

// y = f(x W^T + bias), and before = x W^T + bias unless it is null, as it is with kRelu. x:
// (rows, in), W: (out, in), of the layouts that a MatmulCall takes; bias: null or (out); before and
// y: (rows, out). All of one floating dtype, bias and results contiguous, y not empty; in may be 0.
// In 16 bits f may be of the sum as it is rounded in `before`, or of the sum in float32.
struct LinearActivationCall {
  LinearActivation function;
  const Array* x;
  const Array* W;
  const Array* bias = nullptr;
  const Array* before = nullptr;
  const Array* y;
};

// gx = gy f'(x), and unless `sums` is null, the sum of each column of gx, added to what is there if
// `accumulate`. kept: x, or f(x) of kRelu. gy, kept and gx: (rows, columns), not empty; gx may
// be gy. sums: (columns). All contiguous and of one floating dtype, but sums of 16-bit floats may
// be float32. 16-bit floats are computed in float32, and so are the sums of their columns, which
// are rounded once at most; the numbers that are added up may be those of gx before or after they
// are rounded.
struct LinearActivationGradCall {
  LinearActivation function;
  const Array* gy;
  const Array* kept;
  const Array* gx;
  const Array* sums = nullptr;
  bool accumulate = false;
};

namespace kernels {

// The slots of the calls above.
extern Slot<LinearActivationCall> linear_activation;
extern Slot<LinearActivationGradCall> linear_activation_grad;

}  // namespace kernels

}  // namespace catena
