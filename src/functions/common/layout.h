// The memory layouts in which kernels take batches of images and the like.
#pragma once

#include "catena/array/array.h"

namespace catena::functions {

// Axis 0 of a batch counts the samples, axes 1 to `channel_axes` are the channels, the others the
// positions. In memory the array is contiguous, or dense with the channels innermost ("last").
struct BatchLayout {
  int channel_axes = 1;
  bool last = false;

  // Of x: channels last if its memory has that order, unless it is contiguous too.
  static BatchLayout of(const Array& x, int channel_axes);
  // The stride of an axis of one element means nothing.
  bool fits(const Array& a) const;
  // `a`, or a copy in this layout.
  Array laid_out(const Array& a) const;
  // An array in this layout of like's dtype and device.
  Array uninitialized(const Shape& shape, const Array& like) const;
};

}  // namespace catena::functions
