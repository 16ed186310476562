// Running sums.
#pragma once

#include "catena/array/axes.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Sums of the elements up to each along the axis; without an axis of the flattened x. One kernel
// forward. Floats, else InvalidType; IndexError for an axis out of range. Precision is that of the
// array function (scan.h).
Variable cumsum(const VariableOperand& x, OptionalAxis axis = none);

}  // namespace catena::functions
