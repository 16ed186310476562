// Sums and means over axes.
#pragma once

#include "catena/array/axes.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// axes and keepdims as ReduceAxes says, or keepdims by itself: sum(x, 0, true). Floats, else
// InvalidType; IndexError for an axis out of range. One kernel forward; the gradient is a view. In
// an AutocastScope those of 16-bit floats are of float32.
Variable sum(const VariableOperand& x, const ReduceAxes& axes = none, YesNo keepdims = false);
Variable mean(const VariableOperand& x, const ReduceAxes& axes = none, YesNo keepdims = false);
inline Variable average(const VariableOperand& x, const ReduceAxes& axes = none,
                        YesNo keepdims = false) {
  return mean(x, axes, keepdims);
}
// Sums down to a shape that broadcasts to x's; x itself when the shapes agree.
Variable sum_to(const VariableOperand& x, const Shape& shape);

}  // namespace catena::functions
