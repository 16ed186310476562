// The coefficient of determination.
#pragma once

#include "catena/array/axes.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// 1 - sum((pred - truth)^2) / sum((truth - mean(truth))^2) over the samples, averaged over the
// outputs, or one number for each with raw_values; 0 for an output whose truth is constant. Floats
// of one dtype and shape, (n, ...), else InvalidType; no gradient. float32 (float64 for float64).
// ValueError without samples.
Variable r2_score(const VariableOperand& pred, const VariableOperand& truth,
                  YesNo raw_values = false);

}  // namespace catena::functions
