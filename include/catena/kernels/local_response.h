// Local response normalization: forward and gradient.
#pragma once

#include <cstdint>

#include "catena/kernels/normalization.h"

namespace catena {

// How neighbouring channels are joined. The window of a channel is the channels at most n / 2 from
// it, of those that there are.
struct LocalResponse {
  int64_t n;  // at least 1
  double k, alpha, beta;
};

// y = x * scale^-beta with scale = k + alpha * (sum of x^2 over the window of the channel). x and y
// are of one floating dtype, laid out as `layout` says, and not empty; they do not overlap. Sums
// and powers are made in float32, of float64 in float64. A window's sum is added anew for each
// channel, so that large values leave no trace in the windows without them.
struct LocalResponseCall {
  ChannelLayout layout;
  const Array* x;
  const Array* y;
  LocalResponse rule;
};

// gx = gy * scale^-beta - 2 * alpha * beta * x * (sum of x * gy * scale^(-beta - 1) over the
// window), the scale being computed anew. All arrays are like x.
struct LocalResponseGradCall {
  ChannelLayout layout;
  const Array* x;
  const Array* gy;
  const Array* gx;
  LocalResponse rule;
};

namespace kernels {

// The slots of the calls above.
extern Slot<LocalResponseCall> local_response;
extern Slot<LocalResponseGradCall> local_response_grad;

}  // namespace kernels

}  // namespace catena
