// Cutting along an axis.
#pragma once

#include <initializer_list>

#include "catena/array/manipulation.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Equal parts (the extent must divide), or cuts at ascending positions, {4} at one. Views.
// InvalidType for an axis, a number of parts or a position that does not fit.
Variables split_axis(const VariableOperand& x, int64_t sections, int64_t axis);
Variables split_axis(const VariableOperand& x, const Axes& positions, int64_t axis);
inline Variables split_axis(const VariableOperand& x, std::initializer_list<int64_t> positions,
                            int64_t axis) {
  return split_axis(x, Axes(positions), axis);
}

}  // namespace catena::functions
