#include "catena/functions/activation/crelu.h"

#include "catena/functions/array/concat.h"
#include "functions/common/axes.h"
#include "functions/common/support.h"

namespace catena::functions {

Variable crelu(const VariableOperand& operand, Axis axis) {
  FunctionCall call("CReLU", Autocast::kNone, operand);
  const Variable& x = call[0];
  check_axes(call, x.data(), {axis});
  return concat({relu(x), relu(negative(x))}, axis);
}

}  // namespace catena::functions
