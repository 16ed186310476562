// Conversion between floating dtypes.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Another floating dtype; x itself when it has it already. The gradient has x's dtype. To or from
// another kind of dtype the result is a constant.
Variable cast(const VariableOperand& x, Dtype dtype);

}  // namespace catena::functions
