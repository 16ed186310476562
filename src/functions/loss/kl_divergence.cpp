// kl_divergence, of element-wise functions and sums.
#include "catena/functions/loss/kl_divergence.h"

#include "catena/array/logic.h"
#include "functions/common/loss_parts.h"

namespace catena::functions {

Variable kl_divergence(const VariableOperand& log_q_operand, const VariableOperand& p_operand,
                       Reduction reduction) {
  FunctionCall call("KLDivergence", Autocast::kFloat32, log_q_operand, p_operand);
  check_pair_of_vectors(call, "log_q", "p");
  const Variable log_q = widened(call[0]), p = widened(call[1]);
  // 0 log 0 and 0 times minus infinity count 0.
  const Array counts = not_equal(p.data(), 0.0);
  const Variable difference = log(where(counts, p, 1.0)) - where(counts, log_q, 0.0);
  return reduced(sum(p * difference, 1), reduction, call[0].dtype(), sample_count(log_q));
}

}  // namespace catena::functions
