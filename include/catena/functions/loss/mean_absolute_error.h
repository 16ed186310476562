// The mean of absolute differences.
#pragma once

#include "catena/functions/loss/reduction.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// sum(|x0 - x1|) / size, the sum, or |x0 - x1|. Floats of one dtype and shape, else InvalidType; of
// their dtype, added up in float32 or wider. Where both are equal the gradient is 0.
Variable mean_absolute_error(const VariableOperand& x0, const VariableOperand& x1,
                             Reduction reduction = Reduction::kMean);

}  // namespace catena::functions
