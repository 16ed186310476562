// Running products.
#pragma once

#include "catena/array/axes.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Products of the elements up to each along the axis; without an axis of the flattened x. Products
// of 1, 2, 4, ... elements are multiplied, without a division, so that gradients of all orders are
// right where elements are 0; such a part may overflow where the product in order would not. Of the
// order of log2(extent) kernels each way, and as many arrays kept for backward. Floats, else
// InvalidType; IndexError for an axis out of range. Computed in float32 or wider.
Variable cumprod(const VariableOperand& x, OptionalAxis axis = none);

}  // namespace catena::functions
