// tanh of three straight lines.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// min(max(x, -1), 1) element by element. x: floats; integers are promoted to a float. The gradient
// passes where -1 < x < 1; F::clip, which has other bounds, passes it on them as well. NaN stays.
Variable hard_tanh(const VariableOperand& x);

}  // namespace catena::functions
