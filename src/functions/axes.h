// What reductions over axes share.
#pragma once

#include "catena/array/array.h"

namespace catena::functions {

// A shape with extent 1 at the given axes, which are not negative.
inline Shape with_ones(const Shape& shape, const Axes& axes) {
  Shape kept = shape;
  for (int64_t axis : axes) kept[size_t(axis)] = 1;
  return kept;
}

// InvalidType unless x is of a floating dtype and has all the axes.
void check_axes(const char* label, const Array& x, const Axes& axes);

}  // namespace catena::functions
