// Cutting along an axis.
#pragma once

#include <initializer_list>

#include "catena/array/manipulation.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Equal parts (the extent must divide), or cuts at ascending positions, {4} at one. Views.
// IndexError for an axis out of range, InvalidType for a number of parts or a position that does
// not fit.
Variables split_axis(const VariableOperand& x, int64_t sections, Axis axis);
Variables split_axis(const VariableOperand& x, const Axes& positions, Axis axis);
inline Variables split_axis(const VariableOperand& x, std::initializer_list<int64_t> positions,
                            Axis axis) {
  return split_axis(x, Axes(positions), axis);
}

}  // namespace catena::functions
