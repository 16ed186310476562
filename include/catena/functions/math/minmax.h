// The largest and the smallest element along axes.
#pragma once

#include "catena/functions/axis_list.h"
#include "catena/functions/math.h"

namespace catena::functions {

// Over the given axes, which keepdims keeps with extent 1. The gradient goes to every element that
// equals the extreme. Floats, and axes that x has, else InvalidType.
Variable max(const VariableOperand& x, const AxisList& axes = {}, bool keepdims = false);
Variable min(const VariableOperand& x, const AxisList& axes = {}, bool keepdims = false);

}  // namespace catena::functions
