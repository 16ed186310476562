// Local response normalization: plain arguments. Names as in catena/kernels/local_response.h.
#pragma once

#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

struct LocalResponseArgs {
  int64_t outer, channels, inner;
  const void* x;
  const void* gy;  // gradient only
  void* y;         // y, or gx
  int64_t half;    // a window has the channels at most so far away; below `channels`
  double k, alpha, beta;
  void* scale;  // scratch of the compute type; null: not needed
};

// Whether windows are so wide that the gradient needs scratch for the scale of each element.
bool local_response_needs_scale(int64_t half);

void launch_local_response(Float type, const LocalResponseArgs& args, const Launch& launch);
void launch_local_response_grad(Float type, const LocalResponseArgs& args, const Launch& launch);

}  // namespace catena::gpu
