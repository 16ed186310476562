// Windows of convolutions as matrices, and their sums: plain arguments.
// catena/kernels/convolution.h defines the results.
#pragma once

#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

// Strides in elements. Patches: (n, c, i, j, y, x); image: (n, c, h, w).
struct PatchArgs {
  const void* from;
  void* to;
  int64_t images, channels, height, width, kernel[2], out[2];
  int64_t image[4], patches[6];
  int64_t stride[2], pad[2], dilation[2];
  bool channels_last;  // of the memory that is written: adjacent threads take channels
  bool accumulate;     // sums only
};

void launch_patches(Float type, const PatchArgs& args, const Launch& launch);
void launch_patch_sums(Float type, const PatchArgs& args, const Launch& launch);

}  // namespace catena::gpu
