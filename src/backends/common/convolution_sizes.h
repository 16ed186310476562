// The sizes of a convolution, as its providers need them. Names as in catena/kernels/convolution.h.
#pragma once

#include <cstdint>

#include "catena/array/array.h"
#include "catena/kernels/convolution.h"

namespace catena {

struct ConvolutionSizes : Window {
  int64_t batch, channels, height, width;
  int64_t filters, out_height, out_width;
  int64_t groups;
};

// x may be gx, y may be gy.
inline ConvolutionSizes convolution_sizes(const Array& x, const Array& y, const Window& window,
                                          int groups) {
  const Shape &xs = x.shape(), &ys = y.shape();
  return {window, xs[0], xs[1], xs[2], xs[3], ys[1], ys[2], ys[3], groups};
}

// Whether the convolution is one product of channels for each position, without patches.
inline bool is_pointwise(const ConvolutionSizes& z) {
  return z.kernel[0] == 1 && z.kernel[1] == 1 && z.stride[0] == 1 && z.stride[1] == 1 &&
         z.pad[0] == 0 && z.pad[1] == 0 && z.out_height == z.height && z.out_width == z.width;
}

}  // namespace catena
