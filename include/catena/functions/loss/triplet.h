// Loss of distances to a similar and to another vector.
#pragma once

#include "catena/functions/loss/reduction.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// max(0, |anchor - positive|^2 - |anchor - negative|^2 + margin) of each row (Schroff et al. 2015):
// the mean over the rows, the sum, or one number a row. (n, size) floats of one dtype and shape;
// further axes count as parts of the vectors.
Variable triplet(const VariableOperand& anchor, const VariableOperand& positive,
                 const VariableOperand& negative, double margin = 0.2,
                 Reduction reduction = Reduction::kMean);

}  // namespace catena::functions
