// x times the tanh of its softplus.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// x tanh(log(1 + e^x)) element by element (D. Misra, Mish: A Self Regularized Non-Monotonic Neural
// Activation Function, 2019), computed with one exponential. x: floats; integers are promoted to a
// float.
Variable mish(const VariableOperand& x);

}  // namespace catena::functions
