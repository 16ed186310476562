// Operands of element-wise operations that are constants of a call, such as a slope or a bound: the
// columns CATENA_K of the table.
#pragma once

#include <optional>

#include "catena/kernels/elementwise.h"

namespace catena {

// The number that tests give operand k, if it is a constant: no gradient flows to it. Empty for the
// other operands.
std::optional<double> constant_sample(ElementwiseOp op, int k);

}  // namespace catena
