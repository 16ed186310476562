// Products over axes.
#pragma once

#include "catena/array/axes.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// The product of the elements over axes; axes and keepdims as ReduceAxes says, or keepdims by
// itself. Halves are multiplied until one element is left, so that gradients of all orders are
// right where elements are 0; 1 for no elements. log2(count) kernels. Floats, else InvalidType;
// IndexError for an axis out of range. Computed in float64.
Variable prod(const VariableOperand& x, const ReduceAxes& axes = none, YesNo keepdims = false);

}  // namespace catena::functions
