// The largest and the smallest element along axes.
#pragma once

#include "catena/array/axes.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// axes and keepdims as ReduceAxes says, or keepdims by itself: max(x, 0, true). The gradient goes
// to every element that equals the extreme. Floats, else InvalidType; IndexError for an axis out of
// range.
Variable max(const VariableOperand& x, const ReduceAxes& axes = none, YesNo keepdims = false);
Variable min(const VariableOperand& x, const ReduceAxes& axes = none, YesNo keepdims = false);

}  // namespace catena::functions
