// Joining along an axis.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Inputs that agree in all but one axis, one after the other; else InvalidType. ValueError for no
// input, IndexError for an axis out of range.
Variable concat(const Variables& xs, Axis axis = 1);

}  // namespace catena::functions
