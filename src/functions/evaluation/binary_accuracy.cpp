// binary_accuracy: comparisons, and two sums.
#include "catena/functions/evaluation/binary_accuracy.h"

#include "catena/array/logic.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/autograd/mean.h"
#include "functions/common/support.h"

namespace catena::functions {

Variable binary_accuracy(const VariableOperand& y_operand, const VariableOperand& t_operand,
                         int32_t ignore_label) {
  FunctionCall call("BinaryAccuracy", Autocast::kNone, y_operand, t_operand);
  const Array &y = call[0].data(), &t = call[1].data();
  const TypeOf scores(y, "y"), labels(t, "t");
  const auto checks = Checks(call.named(), scores, labels).advised([] {
    return "Expected are floating scores and labels 0 and 1 in an integer dtype, of one shape.";
  });
  checks.require_float(scores);
  if (!is_unsigned_int(t.dtype())) checks.require(labels.kind() == 'i');
  checks.require(scores.ndim() == labels.ndim());
  for (int i = 0; i < y.ndim(); ++i) checks.require(scores.shape(i) == labels.shape(i));
  call.require_one_device();
  const Dtype wide = compute_dtype(y.dtype());
  const Array counts = not_equal(t, ignore_label);
  const Array right = logical_or(logical_and(greater_equal(y, 0.0), equal(t, 1)),
                                 logical_and(less(y, 0.0), equal(t, 0)));
  const Array total = catena::sum(counts, {.dtype = wide});
  const Array sum = catena::sum(logical_and(right, counts), {.dtype = wide});
  const Variable result = call.unrecorded(sum / catena::maximum(total, 1.0));
  declare_mean(result, {total, static_cast<double>(t.size())});
  return result;
}

}  // namespace catena::functions
