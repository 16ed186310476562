// Extent2D: two numbers of images, one for each axis.
#pragma once

#include <cstdint>

namespace catena::functions {

// A height and a width; one number means both: ConvolutionOptions{.stride = 2, .pad = {1, 0}}.
struct Extent2D {
  int64_t height, width;
  Extent2D(int64_t both) : height(both), width(both) {}
  Extent2D(int64_t height, int64_t width) : height(height), width(width) {}
};

}  // namespace catena::functions
