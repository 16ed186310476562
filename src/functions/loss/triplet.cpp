// triplet, of element-wise functions and sums.
#include "catena/functions/loss/triplet.h"

#include "functions/common/loss_parts.h"

namespace catena::functions {

Variable triplet(const VariableOperand& anchor_operand, const VariableOperand& positive_operand,
                 const VariableOperand& negative_operand, double margin, Reduction reduction) {
  FunctionCall call("Triplet", Autocast::kFloat32, anchor_operand, positive_operand,
                    negative_operand);
  check_pair_of_vectors(call, "anchor", "positive");
  check_pair_of_vectors(call, "anchor", "negative", 0, 2);
  check_not_negative(call, "margin", margin);
  const Variable anchor = widened(call[0]);
  const Variable difference =
      squared_lengths(anchor - widened(call[1])) - squared_lengths(anchor - widened(call[2]));
  return reduced(relu(difference + margin), reduction, call[0].dtype());
}

}  // namespace catena::functions
