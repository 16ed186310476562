// hinge: scores with the sign of their part, through relu.
#include "catena/functions/loss/hinge.h"

#include "catena/array/creation.h"
#include "catena/array/elementwise.h"
#include "catena/kernels/elementwise_ops.h"
#include "functions/common/loss_parts.h"

namespace catena::functions {

Variable hinge(const VariableOperand& x_operand, const VariableOperand& t_operand, HingeNorm norm,
               Reduction reduction) {
  FunctionCall call("Hinge", Autocast::kFloat32, x_operand, t_operand);
  const TypeOf scores(call[0].data(), "x"), labels(call[1].data(), "t");
  const auto checks = Checks(call.named(), scores, labels).advised([] {
    return "Expected are scores (n, classes).";
  });
  checks.require_float(scores);
  checks.require(scores.ndim() == 2);
  check_sample_labels(call, "x", "t", 0, 1);
  call.require_one_device();
  const Variable x = widened(call[0]);
  const Array number = arange(x.shape()[1], {Dtype::kInt64, x.device()});
  const Array is_label = equal(call[1].data().expand_dims(1), number);
  const Array sign = elementwise(ops::where, {is_label, -1.0, 1.0}, Out(x.dtype()));
  const Variable parts = relu(x * sign + 1.0);
  return reduced(norm == HingeNorm::kL2 ? square(parts) : parts, reduction, call[0].dtype(),
                 sample_count(x));
}

}  // namespace catena::functions
