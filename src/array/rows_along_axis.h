// An array as contiguous rows along one axis, and the inverse for results of `keep` columns.
#pragma once

#include "catena/array/axes.h"
#include "catena/array/manipulation.h"

namespace catena {

// With no axis those of the flattened array. IndexError for an axis out of range.
class RowsAlongAxis {
 public:
  RowsAlongAxis(const Array& a, OptionalAxis axis) {
    const Array x = axis ? a : a.ravel();
    axis_ = normalize_axis(axis.value_or(0), x.ndim());
    const Array moved = axis_ == x.ndim() - 1 ? x : moveaxis(x, axis_, -1);
    shape_ = moved.shape();
    extent_ = shape_.back();
    rows_ = 1;
    for (int i = 0; i + 1 < shape_.ndim(); ++i) rows_ *= shape_[size_t(i)];
    input_ = moved.contiguous().reshape({rows_, extent_});
  }
  int64_t extent() const { return extent_; }
  const Array& input() const { return input_; }
  Array make(int64_t keep, Dtype dtype) const {
    return Array::uninitialized({rows_, keep}, dtype, input_.device());
  }
  // Moves the axis of result rows back to its position.
  Array restore(const Array& rows) const {
    Shape shape = shape_;
    shape.back() = rows.shape().back();
    const Array moved = rows.reshape(shape);
    return axis_ == shape.ndim() - 1 ? moved : moveaxis(moved, -1, axis_).contiguous();
  }

 private:
  int axis_;
  Shape shape_;
  int64_t extent_, rows_;
  Array input_;
};

}  // namespace catena
