// Diagonals of two axes, and their sums.
#pragma once

#include "catena/array/axes.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// The elements whose place on axis2 is `offset` after that on axis1, as a last axis; the other axes
// stay in front of it. A view; the gradient is zero off the diagonal. Any dtype. ShapeError for
// fewer than two axes, IndexError for an axis out of range, ValueError for one axis twice.
Variable diagonal(const VariableOperand& x, int64_t offset = 0, Axis axis1 = 0, Axis axis2 = 1);
// The sum of that diagonal, 0 for one without elements. Floats, else InvalidType; otherwise the
// errors of diagonal. 16-bit floats add up in float32.
Variable trace(const VariableOperand& x, int64_t offset = 0, Axis axis1 = 0, Axis axis2 = 1);

}  // namespace catena::functions
