// Variances and standard deviations.
#pragma once

#include "catena/array/axes.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// mean(square(x - mean(x))) over axes, with count - ddof as the divisor: ddof = 1 is the unbiased
// estimate. axes and keepdims as ReduceAxes says, or keepdims by itself: var(x, 0, true). Floats,
// else InvalidType; IndexError for an axis out of range. Computed in float32 or wider. NaN where
// count <= ddof.
Variable var(const VariableOperand& x, const ReduceAxes& axes = none, YesNo keepdims = false,
             double ddof = 0);
// Its square root. The gradient of a deviation of 0 is 0.
Variable std(const VariableOperand& x, const ReduceAxes& axes = none, YesNo keepdims = false,
             double ddof = 0);

}  // namespace catena::functions
