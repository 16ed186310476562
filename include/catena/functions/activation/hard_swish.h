// swish of straight lines and a parabola.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// x min(max(x + 3, 0), 6) / 6 element by element (A. Howard et al., Searching for MobileNetV3,
// 2019). x: floats; integers are promoted to a float. The gradient is 0 from -3 down and gy from 3
// up. NaN stays.
Variable hard_swish(const VariableOperand& x);

}  // namespace catena::functions
