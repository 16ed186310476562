// Pooling: the largest element, or the mean, of what each position of a window sees.
#pragma once

#include "catena/kernels/slot.h"
#include "catena/kernels/window.h"

namespace catena {

class Array;

// Below, images (N, C, extents) have one to three extents, those over which the window moves, and
// results (N, C, positions) one position count for each. Images, results and their gradients are of
// one floating dtype and not empty; all are contiguous, or all have channels last (strides of a
// contiguous (N, extents, C)). Windows have dilation 1 and at most INT32_MAX elements. Every
// position sees an element of the image; positions behind the padded edge are allowed (cover_all).

struct MaxPoolingGradCall;

// y = the largest element of x that each position sees. NaN counts as the largest, padding does not
// count. Of equal elements the first one in C order of the window is the one that gives y and takes
// the gradient, as is the first NaN. A provider that is to see backward calls keeps where it is.
struct MaxPoolingCall {
  const Array* x;
  const Array* y;
  Window window;
  Kept<MaxPoolingGradCall>* kept = nullptr;
  // A provider sets it to true where its backward function reads x and y. The caller then saves
  // both, as it does where nothing is kept; otherwise it lets them go. Null if and only if kept is.
  bool* reads_arrays = nullptr;
};

// gx (+)= for each element the sum of gy over the positions whose largest element it is. The sum is
// made in float32 or wider, in C order of the positions, so that equal calls give equal bits.
struct MaxPoolingGradCall {
  const Array* gy;
  const Array* gx;
  Window window;
  bool accumulate = false;
  const Kept<MaxPoolingGradCall>* kept = nullptr;  // of the forward call
  // Of the forward call; null where its provider keeps what it needs.
  const Array* x = nullptr;
  const Array* y = nullptr;
};

// picked = the element of `image`, an array like x, at the place of each position's largest element
// of x: the transpose of the gradient, and the gradient of the gradient.
struct MaxPoolingPickCall {
  const Array* image;
  const Array* picked;
  Window window;
  // Of the forward call, as above. Only its own provider can read the state; others take x.
  const Kept<MaxPoolingGradCall>* kept = nullptr;
  const Array* x = nullptr;
};

namespace kernels {

// The slots of the calls above.
extern Slot<MaxPoolingCall> max_pooling;
extern Slot<MaxPoolingGradCall> max_pooling_grad;
extern Slot<MaxPoolingPickCall> max_pooling_pick;

}  // namespace kernels

}  // namespace catena
