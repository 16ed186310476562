// Loss of distances between pairs of vectors.
#pragma once

#include "catena/functions/loss/reduction.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// With d the Euclidean distance of a pair of vectors: d^2 / 2 for similar ones (y = 1),
// max(0, margin - d)^2 / 2 for others (y = 0) (Hadsell, Chopra and LeCun 2006). The mean over the
// pairs, the sum, or one number a pair. x0, x1: (n, size) floats of one dtype; further axes count
// as parts of the vectors. y: integers (n). The gradient of a distance of 0 is 0.
Variable contrastive(const VariableOperand& x0, const VariableOperand& x1, const VariableOperand& y,
                     double margin = 1, Reduction reduction = Reduction::kMean);

}  // namespace catena::functions
