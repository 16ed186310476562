// Rectifiers with a bound.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// min(max(x, 0), z) element by element, as in A. Hannun et al., Deep Speech, 2014. x: floats;
// integers are promoted to a float. The gradient passes where 0 < x < z, not on the bounds. NaN
// stays. A z that is not above 0 is a ValueError. One kernel each way.
Variable clipped_relu(const VariableOperand& x, double z = 20);
// clipped_relu with z = 6.
inline Variable relu6(const VariableOperand& x) { return clipped_relu(x, 6); }

}  // namespace catena::functions
