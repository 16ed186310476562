// A rectifier that lets a part of negative numbers through.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Element by element x where x >= 0, else slope * x (A. Maas, A. Hannun and A. Ng, Rectifier
// Nonlinearities Improve Neural Network Acoustic Models, 2013). x and slope: floats, broadcast
// against each other; integers are promoted to a float. The slope is usually a number; a variable
// gets its gradient, x * gy where x < 0. The gradient at 0 is that of positive numbers; NaN stays.
Variable leaky_relu(const VariableOperand& x, const VariableOperand& slope = 0.2);

}  // namespace catena::functions
