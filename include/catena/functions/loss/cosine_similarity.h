// Cosines of angles between vectors, and their loss.
#pragma once

#include "catena/functions/loss/reduction.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// sum(x0 x1) / (max(|x0|, eps) max(|x1|, eps)) along one axis, which falls away. Floats of one
// dtype and shape, else InvalidType; IndexError for an axis out of range. Computed in float32
// or wider; the gradient of a norm below eps is 0.
Variable cosine_similarity(const VariableOperand& x0, const VariableOperand& x1, Axis axis = 1,
                           double eps = 1e-8);
// 1 - cosine for pairs with y = 1, max(0, cosine - margin) for others (y = -1): the mean over the
// pairs, the sum, or one number a pair. x0, x1: (n, size) floats of one dtype and shape;
// y: integers (n).
Variable cosine_embedding_loss(const VariableOperand& x0, const VariableOperand& x1,
                               const VariableOperand& y, double margin = 0,
                               Reduction reduction = Reduction::kMean);

}  // namespace catena::functions
