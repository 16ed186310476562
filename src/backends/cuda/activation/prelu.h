// Gradients of prelu: plain arguments.
#pragma once

#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

struct PreluGradArgs {
  const void *x, *gy, *W;
  void *gx, *gW;
  int64_t outer, channels, inner;
  bool aligned;    // x, gy and gx to 16 bytes
  int64_t parts;   // sums of a channel that are added up at the end
  void* partials;  // compute type; `parts` for each channel
};

// The parts for these extents; 0 where no kernel serves them.
int64_t prelu_grad_parts(const PreluGradArgs& args, const Launch& launch);
void launch_prelu_grad(Float type, const PreluGradArgs& args, const Launch& launch);

}  // namespace catena::gpu
