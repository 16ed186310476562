// Cross entropy that counts easy elements less.
#pragma once

#include "catena/functions/loss/reduction.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// alpha (1 - p)^gamma -log(p) where t is 1, (1 - alpha) p^gamma -log(1 - p) where it is 0, with
// p = sigmoid(x) (Lin et al. 2017): the mean over all elements, the sum, or one number each. x:
// floats; t: integers or floats of one shape. Of x's dtype, computed in float32 or wider.
// ValueError unless alpha is of [0, 1] and gamma at least 0.
Variable focal_loss(const VariableOperand& x, const VariableOperand& t, double alpha = 0.25,
                    double gamma = 2, Reduction reduction = Reduction::kMean);

}  // namespace catena::functions
