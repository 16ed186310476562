// Normal random numbers whose mean and variance are learned.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// mean + exp(ln_var / 2) * eps, element by element, with standard normal eps from the default
// generator of the device (D. Kingma and M. Welling, Auto-Encoding Variational Bayes, 2014). mean,
// ln_var: floats of one dtype and shape, else InvalidType. Each call draws other numbers; backward
// draws them again from the same bits, so nothing but ln_var is saved. Gradients of any order, gy
// and gy * exp(ln_var / 2) * eps / 2.
Variable gaussian(const VariableOperand& mean, const VariableOperand& ln_var);

}  // namespace catena::functions
