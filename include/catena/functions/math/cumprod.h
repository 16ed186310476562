// Running products.
#pragma once

#include "catena/array/axes.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Products of the elements up to each along the axis; without an axis of the flattened x.
// Multiplied in order on CPUs; on GPUs as the array's cumprod says (scan.h). Gradients of all
// orders are right where elements are 0; they are computed in float64, by a few scans, and under
// create_graph by of the order of log2(extent) kernels. Floats, else InvalidType; IndexError for an
// axis out of range. Computed in float32 or wider.
Variable cumprod(const VariableOperand& x, OptionalAxis axis = none);

}  // namespace catena::functions
