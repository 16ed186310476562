// A sigmoid of quotients.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// x / (1 + |x|) element by element. x: floats; integers are promoted to a float.
Variable softsign(const VariableOperand& x);

}  // namespace catena::functions
