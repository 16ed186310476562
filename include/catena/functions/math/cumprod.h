// Running products.
#pragma once

#include "catena/array/axes.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Products of the elements up to each along the axis; without an axis of the flattened x. A scan in
// float64, of which a float64 copy of x is kept for backward. Gradients of all orders are right
// where elements are 0; they take a few scans, and of the order of log2(extent) kernels under
// create_graph. Floats, else InvalidType; IndexError for an axis out of range.
Variable cumprod(const VariableOperand& x, OptionalAxis axis = none);

}  // namespace catena::functions
