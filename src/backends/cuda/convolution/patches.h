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

  // From the first element that a position sees along an axis to the last, and one more.
  int64_t range(int k) const { return (kernel[k] - 1) * dilation[k] + 1; }
  // Whether no two positions see the same element, so that sums have one term.
  bool has_windows_apart() const {
    return (out[0] == 1 || range(0) <= stride[0]) && (out[1] == 1 || range(1) <= stride[1]);
  }
  // Whether positions see every element of the image: of windows that are apart.
  bool covers_image() const {
    const int64_t extents[2] = {height, width};
    for (int k = 0; k < 2; ++k)
      if ((kernel[k] > 1 && dilation[k] > 1) || (out[k] > 1 && kernel[k] < stride[k]) ||
          (out[k] - 1) * stride[k] + range(k) - pad[k] < extents[k])
        return false;
    return true;
  }
};

// Elements of so many bytes, whatever they are; zeros are zero bits.
void launch_patches(int64_t itemsize, const PatchArgs& args, const Launch& launch);
// The copy back, from patches of windows that are apart to the elements of the image that they see.
void launch_patches_back(int64_t itemsize, const PatchArgs& args, const Launch& launch);
void launch_patch_sums(Float type, const PatchArgs& args, bool accumulate, const Launch& launch);

}  // namespace catena::gpu
