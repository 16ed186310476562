// x times its sigmoid.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// x sigmoid(x) element by element (S. Elfwing, E. Uchibe and K. Doya, Sigmoid-Weighted Linear
// Units, 2017). x: floats; integers are promoted to a float.
Variable silu(const VariableOperand& x);
// The same (P. Ramachandran, B. Zoph and Q. Le, Searching for Activation Functions, 2017).
inline Variable swish(const VariableOperand& x) { return silu(x); }

}  // namespace catena::functions
