// The logarithm of a sum of exponentials.
#pragma once

#include "catena/array/axes.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// log(sum(exp(x))) over axes without overflow: the largest element is subtracted first. axes and
// keepdims as ReduceAxes says, or keepdims by itself. Minus infinity where there is nothing to add
// up, or nothing but it, with zero gradient. Floats, else InvalidType; IndexError for an axis out
// of range. Added up in float32 or wider.
Variable logsumexp(const VariableOperand& x, const ReduceAxes& axes = none, YesNo keepdims = false);

}  // namespace catena::functions
