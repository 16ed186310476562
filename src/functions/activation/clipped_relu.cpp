// clipped_relu with a number as its bound, checked; the kernels are a row of the table.
#include "catena/functions/activation/clipped_relu.h"

#include "catena/core/error.h"

namespace catena::functions {

// The row.
Variable clipped_relu(const VariableOperand& x, const VariableOperand& z);

Variable clipped_relu(const VariableOperand& x, double z) {
  CATENA_CHECK(ValueError, z > 0, "ClippedReLU: expected a bound z above 0, got ", z);
  return clipped_relu(x, VariableOperand(z));
}

}  // namespace catena::functions
