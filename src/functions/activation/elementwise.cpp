// Activations with a number that is checked, whose kernels are rows of the table, and compositions.
#include "catena/functions/activation/elementwise.h"

#include "catena/core/error.h"
#include "catena/functions/array/concat.h"
#include "functions/common/axes.h"
#include "functions/common/support.h"

namespace catena::functions {

// The rows.
Variable clipped_relu(const VariableOperand& x, const VariableOperand& z);
Variable hard_shrink(const VariableOperand& x, const VariableOperand& bound);
Variable soft_shrink(const VariableOperand& x, const VariableOperand& bound);

Variable clipped_relu(const VariableOperand& x, double z) {
  CATENA_CHECK(ValueError, z > 0, "ClippedReLU: expected a bound z above 0, got ", z);
  return clipped_relu(x, VariableOperand(z));
}

Variable hard_shrink(const VariableOperand& x, double bound) {
  CATENA_CHECK(ValueError, bound >= 0, "HardShrink: expected a bound of at least 0, got ", bound);
  return hard_shrink(x, VariableOperand(bound));
}

Variable soft_shrink(const VariableOperand& x, double bound) {
  CATENA_CHECK(ValueError, bound >= 0, "SoftShrink: expected a bound of at least 0, got ", bound);
  return soft_shrink(x, VariableOperand(bound));
}

Variable softplus(const VariableOperand& x, double beta) {
  CATENA_CHECK(ValueError, beta != 0, "softplus: expected a beta other than 0");
  return beta == 1 ? softplus(x) : softplus(x.variable("softplus") * beta) * (1 / beta);
}

Variable crelu(const VariableOperand& operand, Axis axis) {
  FunctionCall call("CReLU", Autocast::kNone, operand);
  const Variable& x = call[0];
  check_axes(call, x.data(), {axis});
  return concat({relu(x), relu(negative(x))}, axis);
}

}  // namespace catena::functions
