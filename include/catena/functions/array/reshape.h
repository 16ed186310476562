// The same elements under another shape.
#pragma once

#include "catena/functions/axis_list.h"
#include "catena/functions/math.h"

namespace catena::functions {

// One -1 is inferred. InvalidType when the sizes differ. x itself when the shapes agree.
Variable reshape(const VariableOperand& x, const Shape& shape);
// A new axis of extent 1. IndexError for one out of range, also below.
Variable expand_dims(const VariableOperand& x, int64_t axis);
// Without the given axes, which have extent 1; without all such axes.
Variable squeeze(const VariableOperand& x, const AxisList& axes = {});

}  // namespace catena::functions
