// Basic indexing.
#pragma once

#include <initializer_list>
#include <span>

#include "catena/array/manipulation.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Basic index, as Array::at. A view; the gradient is zero outside it. IndexError out of range.
Variable get_item(const VariableOperand& x, std::span<const Index> indices);
inline Variable get_item(const VariableOperand& x, std::initializer_list<Index> indices) {
  return get_item(x, std::span(indices.begin(), indices.size()));
}

}  // namespace catena::functions
