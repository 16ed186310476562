// The parts of an array along one axis.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// x[0], x[1], ... along the axis, which falls away: views. None for an axis of extent 0.
// IndexError for an axis out of range.
Variables separate(const VariableOperand& x, Axis axis = 0);

}  // namespace catena::functions
