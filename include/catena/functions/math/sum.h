// Sums and means over axes.
#pragma once

#include "catena/functions/axis_list.h"
#include "catena/functions/math.h"

namespace catena::functions {

// Over the given axes, which keepdims keeps with extent 1. Floats, and axes that x has, else
// InvalidType. One kernel forward; the gradient is a view.
Variable sum(const VariableOperand& x, const AxisList& axes = {}, bool keepdims = false);
Variable mean(const VariableOperand& x, const AxisList& axes = {}, bool keepdims = false);
inline Variable average(const VariableOperand& x, const AxisList& axes = {},
                        bool keepdims = false) {
  return mean(x, axes, keepdims);
}
// Sums down to a shape that broadcasts to x's; x itself when the shapes agree.
Variable sum_to(const VariableOperand& x, const Shape& shape);

}  // namespace catena::functions
