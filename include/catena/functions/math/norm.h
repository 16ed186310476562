// Lengths of vectors.
#pragma once

#include "catena/array/axes.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// The p-norm over axes, sum(|x|^p)^(1/p): 2, the length; 1, the sum of sizes; infinity, the largest
// size. axes and keepdims as ReduceAxes says, or keepdims by itself: norm(x, 1, true). The gradient
// of a norm of 0 is 0. Floats, else InvalidType; computed in float32 or wider. IndexError for an
// axis out of range, ValueError unless p >= 1.
Variable norm(const VariableOperand& x, const ReduceAxes& axes = none, YesNo keepdims = false,
              double p = 2);

}  // namespace catena::functions
