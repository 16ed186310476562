// softplus with a sharpness; without one it is a row of the element-wise table.
#pragma once

#include "catena/functions/math/elementwise.h"

namespace catena::functions {

// log(1 + exp(beta x)) / beta, element by element; without beta: that row. beta 0 is a
// ValueError.
Variable softplus(const VariableOperand& x, double beta);

}  // namespace catena::functions
