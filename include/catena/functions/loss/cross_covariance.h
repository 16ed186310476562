// A penalty on dependent representations.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Half the sum of the squares of C = (y - mean(y))^T (z - mean(z)) / n, the covariances between the
// columns of y and those of z (B. Cheung et al., Discovering Hidden Factors of Variation in Deep
// Networks, 2015). y: (n, j), z: (n, k), floats of one dtype, else InvalidType; means are over the
// n samples. 0-d, of their dtype; 16-bit operands are computed in float32. 0 without samples. A
// composition: gradients of any order.
Variable cross_covariance(const VariableOperand& y, const VariableOperand& z);

}  // namespace catena::functions
