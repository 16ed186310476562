// Differences of neighbours.
#pragma once

#include "catena/array/axes.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// The n-th difference x[i+1] - x[i] along the axis, whose extent becomes smaller by n, but not less
// than 0. Floats, else InvalidType; IndexError for an axis out of range, ValueError for n < 0. To
// put elements before or after those of x join them with concat. n kernels each way, or a copy of
// the gradient more.
Variable diff(const VariableOperand& x, int64_t n = 1, Axis axis = -1);

}  // namespace catena::functions
