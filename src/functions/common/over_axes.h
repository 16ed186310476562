// Helpers of functions that reduce axes.
#pragma once

#include <algorithm>

#include "catena/functions/array/cast.h"
#include "functions/common/axes.h"
#include "functions/common/support.h"

namespace catena::functions {

// The axes that a call reduces: checked, not negative, all of them where none is given.
class OverAxes {
 public:
  // InvalidType unless operand 0 is of a floating dtype, IndexError for axes that it does not have.
  OverAxes(const FunctionCall& call, const ReduceAxes& given, bool keepdims)
      : keepdims_(keepdims || given.keepdims), from_(call[0].shape()) {
    check_axes(call, call[0].data(), given.axes);
    axes_ = normalize_axes(call.name(), given.axes, call[0].ndim());
  }
  const Axes& axes() const { return axes_; }
  // The shape of the result with extent 1 at the axes.
  Shape kept() const { return with_ones(from_, axes_); }
  // The shape of the result as the call asks for it.
  Shape result() const {
    if (keepdims_) return kept();
    Shape rest;
    for (int i = 0; i < from_.ndim(); ++i)
      if (!has(i)) rest.push_back(from_[size_t(i)]);
    return rest;
  }
  bool has(int axis) const { return std::find(axes_.begin(), axes_.end(), axis) != axes_.end(); }
  // The number of elements that make one of the result.
  int64_t count() const {
    int64_t n = 1;
    for (const int64_t axis : axes_) n *= from_[size_t(axis)];
    return n;
  }
  ReduceAxes keeping() const { return {AxisList(axes_), true}; }

 private:
  bool keepdims_;
  Shape from_;
  Axes axes_;
};

// x in the dtype in which sums are computed: 16-bit floats in float32.
inline Variable summable(const Variable& x) { return cast(x, compute_dtype(x.dtype())); }

}  // namespace catena::functions
