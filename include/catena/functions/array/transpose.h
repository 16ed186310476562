// Axes in another order: views.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Without axes: reversed. IndexError for an axis out of range, also below.
Variable transpose(const VariableOperand& x, const Axes& axes = {});
Variable swapaxes(const VariableOperand& x, Axis axis1, Axis axis2);

}  // namespace catena::functions
