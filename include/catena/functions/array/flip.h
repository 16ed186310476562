// Elements in another order along axes.
#pragma once

#include "catena/array/axes.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Backwards along the given axes, without axes along all: views, whose gradients are views.
// IndexError for an axis out of range, also below.
Variable flip(const VariableOperand& x, const AxisList& axes = none);
// Along axis 0, and along axis 1. ShapeError for an x without that axis.
Variable flipud(const VariableOperand& x);
Variable fliplr(const VariableOperand& x);
// Shifted along the axis; what leaves at the end comes in at the front. Without an axis the
// flattened x is shifted.
Variable roll(const VariableOperand& x, int64_t shift, OptionalAxis axis = none);

}  // namespace catena::functions
