// One element of each row.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// y[i] = x[i, t[i]]. x: (n, classes) floats; t: (n) integers of any dtype. Result (n). InvalidType
// when they do not fit, DeviceError for operands on different devices. A t outside [0, classes) is
// a ValueError on a CPU; on a GPU, where looking would wait for the device, its element is NaN and
// gets no gradient. Nothing flows to t; the gradient of x is zero elsewhere.
Variable select_item(const VariableOperand& x, const VariableOperand& t);

}  // namespace catena::functions
