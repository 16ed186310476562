// Numbers brought nearer to 0.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// x - bound where x > bound, x + bound where x < -bound, else 0, element by element: PyTorch's
// softshrink, whose lambd is the bound, and the proximal map of bound |x|. x: floats; integers are
// promoted to a float. The gradient passes outside of the bounds, not on them. NaN stays. A bound
// below 0 is a ValueError. One kernel each way.
Variable soft_shrink(const VariableOperand& x, double bound = 0.5);

}  // namespace catena::functions
