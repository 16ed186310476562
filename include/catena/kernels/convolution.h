// Two-dimensional convolutions (cross-correlations) and the patches that they are made of.
#pragma once

#include <cstdint>

#include "catena/kernels/slot.h"
#include "catena/kernels/window.h"

namespace catena {

class Array;

// y = conv(x, W) + b. x (N, C, H, W), W (O, C / groups, kh, kw), y (N, O, oh, ow), b null or (O).
// All of one floating dtype and not empty; windows of two axes. x and y are contiguous, or both
// have channels last (strides of a contiguous (N, H, W, C)); W is contiguous or laid out as x. oh
// and ow are any extents of which every position sees the image or its padding; positions behind
// the padded edge see zeros (cover_all).
struct ConvolutionCall {
  const Array* x;
  const Array* W;
  const Array* b;
  const Array* y;
  Window window;
  int groups = 1;
};

// gx (+)= the gradient of the same x, from gy. Layouts as there; gx like x, gy like y.
struct ConvolutionGradXCall {
  const Array* gy;
  const Array* W;
  const Array* gx;
  Window window;
  int groups = 1;
  bool accumulate = false;
};

// gW (+)= the gradient of the same W, from x and gy. gW is contiguous or laid out as x.
struct ConvolutionGradWCall {
  const Array* x;
  const Array* gy;
  const Array* gW;
  Window window;
  int groups = 1;
  bool accumulate = false;
};

// patches[n, c, i, j, y, x] = the element of image (n, c) that position (y, x) sees at (i, j) of
// its window, zero outside. image (N, C, H, W) of any layout; patches (N, C, kh, kw, oh, ow) of any
// layout without overlaps; equal floating dtypes, not empty.
struct PatchesCall {
  const Array* image;
  const Array* patches;
  Window window;
};

// image (+)= the sum of the elements of `patches` that see each of its elements: the transpose of
// the above. Sums of 16-bit floats are made in float32.
struct PatchSumsCall {
  const Array* patches;
  const Array* image;
  Window window;
  bool accumulate = false;
};

namespace kernels {

// The slots of the calls above.
extern Slot<ConvolutionCall> convolution;
extern Slot<ConvolutionGradXCall> convolution_grad_x;
extern Slot<ConvolutionGradWCall> convolution_grad_w;
extern Slot<PatchesCall> patches;
extern Slot<PatchSumsCall> patch_sums;

}  // namespace kernels

}  // namespace catena
