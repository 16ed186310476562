// Cross entropy of independent yes-or-no scores.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// sum(softplus(x) - x t) over elements with t != ignore_label, divided by the batch size
// x.shape[0], or (normalize) by the number of those elements. x: floats; t: integers 0 and 1 of the
// same shape (others count as 1). 0-d, of x's dtype, added up in float32 or wider. InvalidType when
// they do not fit.
Variable sigmoid_cross_entropy(const VariableOperand& x, const VariableOperand& t,
                               bool normalize = false, int32_t ignore_label = -1);

}  // namespace catena::functions
