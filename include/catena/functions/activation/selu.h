// Scaled exponential linear units.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// 1.0507009873554805 elu(x, 1.6732632423543772), one kernel each way (G. Klambauer et al.,
// Self-Normalizing Neural Networks, 2017). x: floats; integers are promoted to a float.
Variable selu(const VariableOperand& x);

}  // namespace catena::functions
