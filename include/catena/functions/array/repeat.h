// Elements, or whole arrays, several times.
#pragma once

#include "catena/array/axes.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Every element `count` times, side by side along the axis; without an axis of the flattened x.
// ValueError for a negative count, IndexError for an axis out of range.
Variable repeat(const VariableOperand& x, int64_t count, OptionalAxis axis = none);
// x repeated along each axis; repetitions of 1 are put before a shorter list. ValueError for a
// negative one.
Variable tile(const VariableOperand& x, const Shape& repetitions);

}  // namespace catena::functions
