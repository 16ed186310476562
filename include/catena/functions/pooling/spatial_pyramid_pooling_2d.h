// Spatial pyramid pooling: a vector of one length for images of any size.
#pragma once

#include <array>
#include <type_traits>

#include "catena/autograd/function_set.h"
#include "catena/autograd/variable.h"
#include "catena/functions/pooling/max_pooling_2d.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Max pooling over 1, 4, 16, ... parts of each image (He et al. 2014): level i of [0,
// pyramid_height) has 2^i parts along each axis. x: (n, channels, height, width) of a floating
// dtype. The result is (n, channels * (4^pyramid_height - 1) / 3, 1, 1): the parts of each level in
// C order of (channels, rows, columns), one level after the other.
//
// A part has ceil(height / 2^i) rows, as in Chainer; where those are more than the image has, half
// of the rest, rounded down, is padding above it. The parts are those of max_pooling_2d. One kernel
// for each level and one for the concatenation. InvalidType unless x is a batch of images,
// ValueError for a height below 1, ShapeError where a part would see no element: images must be
// large enough for the last level, 2^(pyramid_height - 1) rows and columns at least, and more
// unless that divides them.
Variable spatial_pyramid_pooling_2d(const VariableOperand& x, int64_t pyramid_height);

// The same by the class of the pooling, as in Chainer, which has MaxPooling2D alone.
template <class Pooling>
Variable spatial_pyramid_pooling_2d(const VariableOperand& x, int64_t pyramid_height) {
  static_assert(std::is_same_v<Pooling, class MaxPooling2D>,
                "spatial_pyramid_pooling_2d is for MaxPooling2D");
  return spatial_pyramid_pooling_2d(x, pyramid_height);
}

// spatial_pyramid_pooling_2d as a layer without parameters for images of one shape (channels,
// height, width), for CATENA_FUNCTIONS. The errors of the function that depend on the shape come
// when it is made; a call with images of another shape is an InvalidType.
class SpatialPyramidPooling2D : public Parameterized {
 public:
  SpatialPyramidPooling2D(std::array<int64_t, 3> x_shape, int64_t pyramid_height);
  Variable operator()(const VariableOperand& x) const;
  void visit_parameters(const Visitor& visitor, const std::string& prefix = "") override;

 private:
  std::array<int64_t, 3> x_shape_;
  int64_t pyramid_height_;
};

}  // namespace catena::functions
