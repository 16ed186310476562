// Local response normalization (A. Krizhevsky, I. Sutskever and G. Hinton, ImageNet Classification
// with Deep Convolutional Neural Networks, NIPS 2012).
#pragma once

#include <cstdint>

#include "catena/autograd/variable.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// y[i] = x[i] / (k + alpha * sum of x[j]^2)^beta over the channels j with |i - j| <= n / 2 (rounded
// down) that there are. Channels are axis 1; x: (n, channels, ...) of any floating dtype, with at
// least two axes. alpha is not divided by n, as it is in Caffe, cuDNN and PyTorch. An even n takes
// the same channels as n + 1.
//
// Both memory layouts are first-class; the result has that of x. Sums and powers are made in
// float32 or wider. Differentiable any number of times; one kernel forward, one backward, except
// windows of more than 17 channels on a GPU, whose gradient takes two. ValueError for n < 1,
// InvalidType for x of another dtype or with one axis.
Variable local_response_normalization(const VariableOperand& x, int64_t n = 5, double k = 2,
                                      double alpha = 1e-4, double beta = 0.75);

}  // namespace catena::functions
