// Max pooling: plain arguments. Names as in catena/kernels/pooling.h.
#pragma once

#include "backends/common/pooling_sizes.h"
#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

// With channels first each channel counts as an image of one channel, so that the channels are
// innermost in all of them. Places are the numbers of elements in their window in C order, in the
// memory order of y: bytes, or 32 bits where the window has more than kMostTapsOfByte elements.
struct PoolingArgs {
  PoolingSizes sizes;  // `last` is not read
  bool aligned;        // all addresses are multiples of 16
  const void* x;       // of the pick: the image
  void* y;
  void* places;  // read by gradient and pick, written by the forward pass; there null: not wanted
  const void* gy;
  void* gx;
  bool accumulate;
};

// Writes y and places.
void launch_max_pooling(Float type, const PoolingArgs& args, const Launch& launch);
// Writes gx, or adds to it, from gy and places.
void launch_max_pooling_grad(Float type, const PoolingArgs& args, const Launch& launch);
// Writes y, the elements of x at the places.
void launch_max_pooling_pick(Float type, const PoolingArgs& args, const Launch& launch);

}  // namespace catena::gpu
