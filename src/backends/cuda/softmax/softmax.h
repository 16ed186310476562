// Softmax and log-softmax over the middle axis of (outer, classes, inner): plain arguments.
#pragma once

#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

struct SoftmaxArgs {
  const void* x;   // forward: input; gradient: the forward's result
  const void* gy;  // gradient only
  void* y;         // result
  int64_t outer, classes, inner;
  bool log;
  bool aligned;  // all addresses are aligned to 16 bytes
};

void launch_softmax(Float type, const SoftmaxArgs& args, const Launch& launch);
void launch_softmax_grad(Float type, const SoftmaxArgs& args, const Launch& launch);

}  // namespace catena::gpu
