// softmax and its logarithm.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// exp(x) / sum(exp(x)) along one axis, the maximum subtracted first. x: floats of at least one axis
// (for the default axis: two). One kernel forward, one backward. InvalidType for another dtype,
// IndexError for an axis out of range.
Variable softmax(const VariableOperand& x, Axis axis = 1);
// log(softmax(x)) without overflow.
Variable log_softmax(const VariableOperand& x, Axis axis = 1);

}  // namespace catena::functions
