// Helpers of functions with axes.
#pragma once

#include "catena/array/array.h"
#include "catena/autograd/function_call.h"
#include "functions/common/checks.h"

namespace catena::functions {

// A shape with extent 1 at the given axes, which are not negative.
inline Shape with_ones(const Shape& shape, const Axes& axes) {
  Shape kept = shape;
  for (int64_t axis : axes) kept[size_t(axis)] = 1;
  return kept;
}

// The order that undoes a transposition by `order`, whose negative axes count from the end.
inline Axes inverse_order(const Axes& order) {
  Axes inverse(order.size(), int64_t{0});
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t axis = order[i] < 0 ? order[i] + order.ndim() : order[i];
    inverse[size_t(axis)] = static_cast<int64_t>(i);
  }
  return inverse;
}

// IndexError, with the axes that the input has, for another axis. `hint` may add a sentence about
// it, after a space.
void require_axis(const FunctionCall& call, const NamedInput& input, int64_t axis,
                  const char* hint = "");

// InvalidType unless x is of a floating dtype, IndexError for an axis that it does not have.
void check_axes(const FunctionCall& call, const Array& x, const Axes& axes);

}  // namespace catena::functions
