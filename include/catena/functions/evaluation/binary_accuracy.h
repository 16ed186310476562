// The share of right yes-or-no answers.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Share of elements whose score is at least 0 where their label is 1, and below 0 where it is 0,
// among those whose label is not ignore_label; 0 when all are ignored. NaN counts as wrong, and so
// does a label that is neither. y: floats, t: integers of the same shape. 0-d float32 (float64 for
// float64 y). InvalidType when they do not fit.
Variable binary_accuracy(const VariableOperand& y, const VariableOperand& t,
                         int32_t ignore_label = -1);

}  // namespace catena::functions
