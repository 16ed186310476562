// Window that moves over an image of one, two or three axes.
#pragma once

#include <cstdint>

namespace catena {

// The most axes over which a window moves.
inline constexpr int kMaxWindowAxes = 3;

// Of an image (n, channels, ...) index k is the axis 2 + k: of two axes 0 is the height, 1 the
// width. Position p of the result sees the elements p * stride - pad + i * dilation for i of
// [0, kernel) along each axis; what is outside of the image counts as nothing.
struct Window {
  int64_t kernel[kMaxWindowAxes];
  int64_t stride[kMaxWindowAxes];
  int64_t pad[kMaxWindowAxes];
  int64_t dilation[kMaxWindowAxes];
  int axes = 2;

  // Elements that one position sees.
  int64_t taps() const;
  // The distance from the first to the last element that a position sees along an axis, plus 1; 0
  // if that leaves 64 bits.
  int64_t range(int axis) const;
  // Positions along an axis of an image of `size` elements: those at which the window is within the
  // padded image and, with cover_all, one more for a rest that they leave. 0 where none fits, and
  // for padding or dilation beyond any image in memory.
  int64_t positions(int axis, int64_t size, bool cover_all = false) const;
};

}  // namespace catena
