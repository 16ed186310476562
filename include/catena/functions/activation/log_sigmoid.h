// The logarithm of the sigmoid.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// log(sigmoid(x)) = -softplus(-x) element by element, without overflow. x: floats; integers are
// promoted to a float.
Variable log_sigmoid(const VariableOperand& x);

}  // namespace catena::functions
