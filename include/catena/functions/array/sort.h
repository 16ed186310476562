// Elements in ascending order.
#pragma once

#include "catena/array/axes.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// A copy in ascending order along the axis, NaN last; with none of the flattened x. Any dtype that
// arrays can be sorted by. The gradient goes back to the places that the elements came from; equal
// elements keep their order, so that each gets its own. For the positions use catena::argsort, and
// take_along_axis to apply them to another variable. IndexError for an axis out of range; a 0-d x
// has none. Nothing waits for a GPU.
Variable sort(const VariableOperand& x, OptionalAxis axis = -1);

}  // namespace catena::functions
