// The opposite of pooling: each element fills a window of a larger image.
#pragma once

#include <optional>

#include "catena/autograd/variable.h"
#include "catena/functions/extent_2d.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// How the window moves over the result; the same for both axes unless two numbers are given.
struct Unpooling2DOptions {
  std::optional<Extent2D> stride = {};   // that of the window: windows do not overlap
  Extent2D pad = 0;                      // rows and columns that are cut off each side
  std::optional<Extent2D> outsize = {};  // of the result; without it as below
  // Whether the result has stride - 1 rows and columns less, as in Chainer: about the least image
  // over which a pooling with cover_all has as many positions.
  bool cover_all = true;
};

// y[n, c] = the sum over i and j of windows of ksize at (i * stride - pad, j * stride - pad) that
// have x[n, c, i, j] everywhere, as Chainer's unpooling_2d: x repeated where windows do not
// overlap, sums where they do, zeros where there is none. x: (n, channels, height, width) of a
// floating dtype. The result is (n, channels, oh, ow) with `outsize`, else oh = stride * (height -
// 1) + kh - 2 * pad, with cover_all less stride - 1. Parts of windows beyond the result are
// dropped.
//
// The gradient sums gy over windows: kh * kw times average_pooling_2d. One kernel forward and one
// backward, on both memory layouts. 16-bit floats are summed in float32. Differentiable any number
// of times; equal calls give equal bits. InvalidType unless x is a batch of images, ValueError for
// sizes and strides below 1, ShapeError where nothing of the result is left.
Variable unpooling_2d(const VariableOperand& x, Extent2D ksize,
                      const Unpooling2DOptions& options = {});

}  // namespace catena::functions
