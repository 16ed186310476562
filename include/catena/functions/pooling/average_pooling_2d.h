// Two-dimensional average pooling: with windows, of whole images, and into images of a given size.
#pragma once

#include <optional>

#include "catena/autograd/function_set.h"
#include "catena/autograd/variable.h"
#include "catena/functions/extent_2d.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// How the window moves; the same for both axes unless two numbers are given.
struct AveragePooling2DOptions {
  std::optional<Extent2D> stride = {};  // that of the window: windows do not overlap
  Extent2D pad = 0;                     // rows and columns of zeros on each side
  // One more position where the stride leaves a rest of the image, as in Caffe and with PyTorch's
  // ceil_mode; Chainer has no such choice here.
  bool cover_all = false;
};

// y[n, c, i, j] = the sum of what the window sees of x[n, c] at (i * stride - pad, j * stride -
// pad), divided by kh * kw: padding counts as zeros, as in Chainer. x: (n, channels, height, width)
// of a floating dtype; ksize: height and width (kh, kw) of the window. The result is (n, channels,
// oh, ow) with oh = (height + 2 * pad - kh) / stride + 1, rounded down, with cover_all up unless
// the last position would begin behind the image. That position is divided by the elements that it
// has of the padded image.
//
// One kernel forward and one backward, one more along an axis to which cover_all adds a position,
// on both memory layouts: where x has its channels last, so has the result. 16-bit floats are
// summed in float32. Differentiable any number of times; equal calls give equal bits. InvalidType
// unless x is a batch of images, ValueError for sizes and strides below 1, ShapeError where the
// window does not fit into the padded image.
Variable average_pooling_2d(const VariableOperand& x, Extent2D ksize,
                            const AveragePooling2DOptions& options = {});

// The mean of each channel of each image, as (n, channels, 1, 1): one kernel. ShapeError for images
// without elements.
Variable global_average_pooling_2d(const VariableOperand& x);

// y[n, c, i, j] = the mean of the rows floor(i * height / oh) to ceil((i + 1) * height / oh) - 1
// and of the columns that follow in the same way, for outsize (oh, ow): PyTorch's
// adaptive_avg_pool2d. Parts overlap where the sizes do not divide. One kernel forward and one
// backward. InvalidType unless x is a batch of images, ValueError for an outsize below 1,
// ShapeError for images without elements.
Variable adaptive_average_pooling_2d(const VariableOperand& x, Extent2D outsize);

// average_pooling_2d as a layer without parameters, for CATENA_FUNCTIONS.
class AveragePooling2D : public Parameterized {
 public:
  explicit AveragePooling2D(Extent2D ksize, const AveragePooling2DOptions& options = {});
  Variable operator()(const VariableOperand& x) const;
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;
  Extent2D ksize() const { return ksize_; }
  const AveragePooling2DOptions& options() const { return options_; }

 private:
  Extent2D ksize_;
  AveragePooling2DOptions options_;
};

}  // namespace catena::functions
