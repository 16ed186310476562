// Gaussian error linear units.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// x Phi(x) element by element, where Phi is the normal distribution function, by erfc, so that
// small results keep their digits (D. Hendrycks and K. Gimpel, Gaussian Error Linear Units, 2016).
// x: floats; integers are promoted to a float.
Variable gelu(const VariableOperand& x);
// The approximation 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) of the same paper, which is
// cheaper: one exponential.
Variable gelu_tanh(const VariableOperand& x);

}  // namespace catena::functions
