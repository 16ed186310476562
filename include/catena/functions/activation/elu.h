// Exponential linear units.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Element by element x where x >= 0, else alpha (e^x - 1) (D. Clevert, T. Unterthiner and
// S. Hochreiter, Fast and Accurate Deep Network Learning by Exponential Linear Units, 2015). x:
// floats; integers are promoted to a float. alpha is a constant, usually a number: a variable that
// requires a gradient is a GradientError. The gradient at 0 is that of positive numbers.
Variable elu(const VariableOperand& x, const VariableOperand& alpha = 1.0);

}  // namespace catena::functions
