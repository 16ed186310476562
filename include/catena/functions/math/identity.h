// The function that changes nothing.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Passes values and gradients unchanged.
Variable identity(const VariableOperand& x);
Variables identity(const Variables& xs);

}  // namespace catena::functions
