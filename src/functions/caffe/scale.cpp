#include "functions/caffe/scale.h"

#include "catena/functions/math/elementwise.h"

namespace catena::functions::caffe {
namespace {

// The same numbers as an array that broadcasts against x.
Variable along(const Variable& numbers, const Shape& x, int64_t axis) {
  const Shape& shape = numbers.shape();
  const int64_t ndim = int64_t(x.size()), first = axis < 0 ? axis + ndim : axis;
  bool fits = first >= 0 && first + int64_t(shape.size()) <= ndim;
  for (size_t i = 0; fits && i < shape.size(); ++i) fits = x[size_t(first) + i] == shape[i];
  CATENA_CHECK(ShapeError, fits, "Scale: numbers of shape ", shape,
               " are expected along the axes of x from ", axis, " on, but x has shape ", x);
  Shape whole;
  for (int64_t i = 0; i < ndim; ++i) {
    const bool inside = i >= first && i < first + int64_t(shape.size());
    whole.push_back(inside ? shape[size_t(i - first)] : 1);
  }
  return numbers.reshape(whole);
}

}  // namespace

Variable scaled(const Variable& x, const Variable& factors, int64_t axis) {
  return x * along(factors, x.shape(), axis);
}

Variable shifted(const Variable& x, const Variable& offsets, int64_t axis) {
  return x + along(offsets, x.shape(), axis);
}

void Scale::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  if (W.defined()) visitor(prefix + "W", W);
  if (b.defined()) visitor(prefix + "b", b);
}

}  // namespace catena::functions::caffe
