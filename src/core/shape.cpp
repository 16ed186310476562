// Shapes: strides, broadcasting, axes.
#include "catena/core/shape.h"

#include <algorithm>
#include <ostream>

#include "catena/core/error.h"
#include "core/error_name.h"

namespace catena {

std::string to_string(const Dims& dims) {
  std::string text = "(";
  for (size_t i = 0; i < dims.size(); ++i) text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + (dims.size() == 1 ? ",)" : ")");
}

std::ostream& operator<<(std::ostream& os, const Dims& dims) { return os << to_string(dims); }

int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  bool overflow = false;
  for (int64_t extent : shape) {
    CATENA_CHECK(ShapeError, extent >= 0, "shape ", shape, " has a negative extent");
    overflow |= __builtin_mul_overflow(count, extent, &count);
  }
  // An extent of 0 makes the whole empty, whatever the others multiply to.
  if (overflow && std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  CATENA_CHECK(ShapeError, !overflow, "shape ", shape, " has more than 2^63 elements");
  return count;
}

Strides contiguous_strides(const Shape& shape, int64_t itemsize) {
  Strides strides(shape.size(), 0);
  int64_t step = itemsize;
  for (int i = shape.ndim() - 1; i >= 0; --i) {
    strides[i] = step;
    if (shape[i] > 1) step *= shape[i];
  }
  return strides;
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const size_t lead = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i) {
    const int64_t x = longer[lead + i], y = shorter[i];
    CATENA_CHECK(ShapeError, x == y || x == 1 || y == 1, "shapes ", a, " and ", b,
                 " cannot be broadcast together (axis ", lead + i, " of the result: ", x,
                 " against ", y, ")");
    result[lead + i] = x == 1 ? y : x;
  }
  return result;
}

int normalize_axis(int64_t axis, int ndim) {
  CATENA_CHECK(IndexError, axis >= -ndim && axis < ndim, "axis ", axis,
               " is out of range for an array of ", ndim, " dimensions");
  return static_cast<int>(axis < 0 ? axis + ndim : axis);
}

Axes normalize_axes(const Axes& axes, int ndim) {
  Axes result;
  if (axes.empty()) {
    for (int i = 0; i < ndim; ++i) result.push_back(i);
    return result;
  }
  for (int64_t axis : axes) result.push_back(normalize_axis(axis, ndim));
  std::sort(result.begin(), result.end());
  CATENA_CHECK(ValueError, std::adjacent_find(result.begin(), result.end()) == result.end(),
               "an axis is given twice in ", axes);
  return result;
}

Shape broadcast_shapes(const char* who, const Shape& a, const Shape& b) {
  const ErrorName name(who);
  return broadcast_shapes(a, b);
}
int normalize_axis(const char* who, int64_t axis, int ndim) {
  const ErrorName name(who);
  return normalize_axis(axis, ndim);
}
Axes normalize_axes(const char* who, const Axes& axes, int ndim) {
  const ErrorName name(who);
  return normalize_axes(axes, ndim);
}

}  // namespace catena
