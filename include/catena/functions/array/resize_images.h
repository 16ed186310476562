// Images of another size, by interpolation.
#pragma once

#include "catena/autograd/variable.h"
#include "catena/functions/extent_2d.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// kBilinear: the four elements around a place, weighted by their nearness. kNearest: the element at
// (floor(i * height / oh), floor(j * width / ow)), PyTorch's "nearest".
enum class ResizeMode { kBilinear, kNearest };

// How resize_images makes elements.
struct ResizeImagesOptions {
  // Of how many elements of x.
  ResizeMode mode = ResizeMode::kBilinear;
  // Which place of x belongs to element i of the oh rows of a bilinear result, and likewise of its
  // columns: i * (height - 1) / (oh - 1), so that the corners of both images are the same elements,
  // as in Chainer; without it (i + 1/2) * height / oh - 1/2, no further than the edge, PyTorch's
  // default.
  bool align_corners = true;
};

// x, (n, channels, height, width) of a floating dtype, as images (n, channels, oh, ow) of the given
// size (oh, ow). The weights are exact quotients of integers, so that the size of x gives x. There
// is no smoothing: where the result is less than half as large, elements of x count for nothing.
//
// One kernel forward and one backward, on both memory layouts: where x has its channels last, so
// has the result. 16-bit floats are summed in float32. Differentiable any number of times; equal
// calls give equal bits. InvalidType unless x is a batch of images, ValueError for a size below 1,
// ShapeError for images without elements.
Variable resize_images(const VariableOperand& x, Extent2D output_shape,
                       const ResizeImagesOptions& options = {});

// Each element of x as a block of scale.height x scale.width elements: nn.UpsamplingNearest2d, and
// resize_images in the mode kNearest to a multiple of the size. ValueError for a scale below 1.
Variable upsampling_nearest(const VariableOperand& x, Extent2D scale);

}  // namespace catena::functions
