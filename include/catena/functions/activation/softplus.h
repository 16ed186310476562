// softplus with a sharpness; without one it is a row of the element-wise table (math.h).
#pragma once

#include "catena/functions/math.h"

namespace catena::functions {

// log(1 + exp(beta x)) / beta, element by element; without beta: the row of math.h. beta 0 is a
// ValueError.
Variable softplus(const VariableOperand& x, double beta);

}  // namespace catena::functions
