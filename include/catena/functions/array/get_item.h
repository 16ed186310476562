// Basic indexing.
#pragma once

#include <vector>

#include "catena/array/manipulation.h"
#include "catena/functions/math.h"

namespace catena::functions {

// Basic index, as Array::at. A view; the gradient is zero outside it. IndexError out of range.
Variable get_item(const VariableOperand& x, const std::vector<Index>& indices);

}  // namespace catena::functions
