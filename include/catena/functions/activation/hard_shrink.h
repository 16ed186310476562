// x, or 0 near 0.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// 0 where -bound <= x <= bound, else x, element by element: PyTorch's hardshrink, whose lambd is
// the bound. x: floats; integers are promoted to a float. The gradient passes outside of the
// bounds, not on them. NaN stays. A bound below 0 is a ValueError. One kernel each way.
Variable hard_shrink(const VariableOperand& x, double bound = 0.5);

}  // namespace catena::functions
