// Two-dimensional max pooling: with windows, and into images of a given size.
#pragma once

#include <optional>

#include "catena/autograd/function_set.h"
#include "catena/autograd/variable.h"
#include "catena/functions/extent_2d.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// How the window moves; the same for both axes unless two numbers are given.
struct MaxPooling2DOptions {
  std::optional<Extent2D> stride = {};  // that of the window: windows do not overlap
  Extent2D pad = 0;                     // rows and columns on each side that do not count
  // One more position where the stride leaves a rest of the image: PyTorch's ceil_mode, but on by
  // default, as in Chainer.
  bool cover_all = true;
};

// y[n, c, i, j] = the largest element of x[n, c] that the window sees at (i * stride - pad, j *
// stride - pad). x: (n, channels, height, width) of a floating dtype; ksize: height and width of
// the window. The result is (n, channels, oh, ow) with oh = (height + 2 * pad - kh) / stride + 1,
// rounded down, with cover_all up unless the last position would begin behind the image, where
// there is padding at most: Caffe and PyTorch leave it out, too. Padding is never the largest. NaN
// counts as the largest. Of equal elements the first one, row by row, takes the gradient; where
// windows overlap, gradients add up.
//
// One kernel forward and one backward, on both memory layouts: where x has its channels last, so
// has the result. A recorded call keeps one byte for each element of y, four where the window has
// more than 255 elements, and lets x and y go. Differentiable any number of times; equal calls give
// equal bits. InvalidType unless x is a batch of images, ValueError for sizes and strides below 1,
// ShapeError where the window does not fit into the padded image or is not larger than the pad.
Variable max_pooling_2d(const VariableOperand& x, Extent2D ksize,
                        const MaxPooling2DOptions& options = {});

// y[n, c, i, j] = the largest element of the rows floor(i * height / oh) to ceil((i + 1) * height /
// oh) - 1 and of the columns that follow in the same way, for outsize (oh, ow): PyTorch's
// adaptive_max_pool2d. Parts overlap where the sizes do not divide. NaN, equal elements, memory
// order and derivatives are those of max_pooling_2d.
//
// Where the sizes divide, one kernel forward and one backward. Along an axis where they do not, the
// parts are first copied side by side, with as many elements each as the largest has. InvalidType
// unless x is a batch of images, ValueError for an outsize below 1, ShapeError for images without
// elements.
Variable adaptive_max_pooling_2d(const VariableOperand& x, Extent2D outsize);

// max_pooling_2d as a layer without parameters, for CATENA_FUNCTIONS.
class MaxPooling2D : public Parameterized {
 public:
  explicit MaxPooling2D(Extent2D ksize, const MaxPooling2DOptions& options = {});
  Variable operator()(const VariableOperand& x) const;
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;
  Extent2D ksize() const { return ksize_; }
  const MaxPooling2DOptions& options() const { return options_; }

 private:
  Extent2D ksize_;
  MaxPooling2DOptions options_;
};

}  // namespace catena::functions
