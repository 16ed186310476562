// The mean of squared differences.
#pragma once

#include "catena/functions/loss/reduction.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// sum((x0 - x1)^2) / size; 0 for arrays without elements. Floats of one dtype and shape, else
// InvalidType. 0-d, of their dtype, added up in float32 or wider. Also the sum, or the squares
// themselves, of the shape of x0.
Variable mean_squared_error(const VariableOperand& x0, const VariableOperand& x1,
                            Reduction reduction = Reduction::kMean);

}  // namespace catena::functions
