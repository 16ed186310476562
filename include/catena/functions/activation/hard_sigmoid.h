// A sigmoid of three straight lines.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// min(max(0.2 x + 0.5, 0), 1) element by element. x: floats; integers are promoted to a float. The
// gradient is 0.2 gy where -2.5 < x < 2.5. NaN stays. The slope is Chainer's; that of PyTorch's
// hardsigmoid is 1/6.
Variable hard_sigmoid(const VariableOperand& x);

}  // namespace catena::functions
