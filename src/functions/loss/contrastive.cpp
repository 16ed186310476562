// contrastive, of element-wise functions and sums.
#include "catena/functions/loss/contrastive.h"

#include "functions/common/loss_parts.h"

namespace catena::functions {

Variable contrastive(const VariableOperand& x0, const VariableOperand& x1, const VariableOperand& y,
                     double margin, Reduction reduction) {
  FunctionCall call("Contrastive", Autocast::kFloat32, x0, x1, y);
  check_pair_of_vectors(call, "x0", "x1");
  check_sample_labels(call, "x0", "y", 0, 2);
  check_not_negative(call, "margin", margin);
  const Variable squares = squared_lengths(widened(call[0]) - widened(call[1]));
  const Variable missing = relu(margin - length_of(squares));
  const Variable losses = where(not_equal(call[2].data(), 0), squares, square(missing)) * 0.5;
  return reduced(losses, reduction, call[0].dtype());
}

}  // namespace catena::functions
