// Functions of images that are one call of the slot `resample`: average pooling, unpooling,
// resizing.
#pragma once

#include "catena/autograd/linear_map.h"
#include "catena/kernels/axis_map.h"
#include "functions/common/image_window.h"

namespace catena::functions {

// What such a function is. A transposed one is the adjoint of the map that the axes describe.
struct ResamplePlan {
  AxisMap rows, columns;
  double divisor = 1;
  bool transposed = false;
  Shape x_shape, y_shape;
  BatchLayout layout;

  // Of the images x: an axis has as many elements `in`, or `out` where the map is transposed.
  ResamplePlan(const AxisMap& rows, const AxisMap& columns, const Array& x,
               bool transposed = false);

  // From x to y, or with `adjoint` from gy to gx.
  Array apply(const Array& from, bool adjoint) const;
  void apply(const Array& from, const Array& to, bool adjoint, bool accumulate) const;

 private:
  void resample(const Array& from, const Array& to, bool transposed, bool accumulate) const;
};

// ShapeError, in the name of the call, unless the extents of the image and of its result are at
// least 1 and at most kMostOfAxis, as rules other than windows demand.
void require_sizes(const FunctionCall& call, const Extent2D& image, const Extent2D& result);

// The linear map of a function, whose label is Name::kName.
template <class Name>
struct Resample {
  static constexpr const char* kName = Name::kName;
  ResamplePlan plan;

  Array forward(const Array& x) const { return plan.apply(x, false); }
  void forward(const Array& x, const Array& y, bool accumulate) const {
    plan.apply(x, y, false, accumulate);
  }
  Array adjoint(const Array& gy) const { return plan.apply(gy, true); }
  void adjoint(const Array& gy, const Array& gx, bool accumulate) const {
    plan.apply(gy, gx, true, accumulate);
  }
};

}  // namespace catena::functions
