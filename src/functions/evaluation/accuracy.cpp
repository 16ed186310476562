// accuracy: a kernel without a gradient.
#include "catena/functions/evaluation/accuracy.h"

#include "catena/array/logic.h"
#include "catena/array/reduction.h"
#include "catena/autograd/mean.h"
#include "catena/kernels/loss.h"
#include "functions/common/scored_labels.h"

namespace catena::functions {
Variable accuracy(const VariableOperand& y_operand, const VariableOperand& t_operand,
                  std::optional<int32_t> ignore_label) {
  FunctionCall call("Accuracy", Autocast::kNone, y_operand, t_operand);
  const Variable &y = call[0], &t = call[1];
  check_scored_labels(call, "accuracy(scores, labels)", ignore_label);
  const AxisView view(y.shape(), 1);
  const Array labels = Labels::as_int32(t.data()).reshape({view.outer, view.inner});
  const Array result = Array::uninitialized({}, compute_dtype(y.dtype()), y.device());
  if (y.size() == 0)
    result.fill(0.0);
  else
    kernels::accuracy(y.device(), {view.of(y.data()), labels, ignore_label.has_value(),
                                   ignore_label.value_or(-1), result});
  const Variable ratio = call.unrecorded(result);
  if (ignore_label)
    declare_mean(ratio, {catena::sum(not_equal(labels, *ignore_label), {.dtype = result.dtype()}),
                         static_cast<double>(labels.size())});
  return ratio;
}

}  // namespace catena::functions
