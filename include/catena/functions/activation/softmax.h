// Activation functions. relu, sigmoid, tanh and softplus are rows of the element-wise table.
#pragma once

#include "catena/functions/math.h"

namespace catena::functions {

// log(1 + exp(beta x)) / beta; without beta: the row of math.h. beta 0 is a ValueError.
Variable softplus(const VariableOperand& x, double beta);

// exp(x) / sum(exp(x)) along one axis, the maximum subtracted first. x: floats of at least one axis
// (for the default axis: two). One kernel forward, one backward.
Variable softmax(const VariableOperand& x, int64_t axis = 1);
// log(softmax(x)) without overflow.
Variable log_softmax(const VariableOperand& x, int64_t axis = 1);

}  // namespace catena::functions
