// mean_absolute_error: the difference, its size and their mean.
#include "catena/functions/loss/mean_absolute_error.h"

#include "functions/common/loss_parts.h"

namespace catena::functions {

Variable mean_absolute_error(const VariableOperand& x0, const VariableOperand& x1,
                             Reduction reduction) {
  FunctionCall call("MeanAbsoluteError", Autocast::kFloat32, x0, x1);
  check_pair(call, "x0", "x1");
  return reduced(absolute(widened(call[0]) - widened(call[1])), reduction, call[0].dtype());
}

}  // namespace catena::functions
