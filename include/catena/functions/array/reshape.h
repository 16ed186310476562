// The same elements under another shape.
#pragma once

#include "catena/array/axes.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// One -1 is inferred. InvalidType when the sizes differ. x itself when the shapes agree.
Variable reshape(const VariableOperand& x, const Shape& shape);
// A new axis of extent 1. IndexError for one out of range, also below.
Variable expand_dims(const VariableOperand& x, Axis axis);
// Without the given axes, which have extent 1; without axes: all of extent 1.
Variable squeeze(const VariableOperand& x, const AxisList& axes = none);

}  // namespace catena::functions
