// accuracy: a kernel without a gradient.
#include "catena/functions/evaluation/accuracy.h"

#include "catena/core/entry_scope.h"
#include "catena/kernels/loss.h"
#include "functions/common/advice.h"
#include "functions/common/labels.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

// t has y's axes without the classes; trailing ones of extent 1 may be missing.
void check_types(const FunctionCall& call) {
  const Array &y = call[0].data(), &t = call[1].data();
  const TypeOf scores(y, "y"), labels(t, "t");
  const auto checks = Checks(call.named(), scores, labels).advised([&] {
    return label_advice("accuracy(scores, labels)", y, t);
  });
  checks.require_float(scores);
  if (t.dtype() != Dtype::kInt64) checks.require(labels.dtype() == Dtype::kInt32);
  checks.require(scores.ndim() >= 2, labels.ndim() >= 1, labels.ndim() <= scores.ndim() - 1,
                 scores.shape(0) == labels.shape(0));
  for (int i = 2; i < y.ndim(); ++i) {
    if (i - 1 < t.ndim())
      checks.require(scores.shape(i) == labels.shape(i - 1));
    else
      checks.require(scores.shape(i) == 1);
  }
}

}  // namespace

Variable accuracy(const VariableOperand& y_operand, const VariableOperand& t_operand,
                  std::optional<int32_t> ignore_label) {
  FunctionCall call("Accuracy", Autocast::kNone, y_operand, t_operand);
  const Variable &y = call[0], &t = call[1];
  check_types(call);
  call.require_one_device();
  const AxisView view(y.shape(), 1);
  const Array labels = Labels::as_int32(t.data()).reshape({view.outer, view.inner});
  if (y.device().is_cpu()) {
    const EntryScope named(call.name());
    Labels::check(t.data(), y.shape()[1], ignore_label.value_or(-1));
  }
  const Array result = Array::uninitialized({}, compute_dtype(y.dtype()), y.device());
  if (y.size() == 0)
    result.fill(0.0);
  else
    kernels::accuracy(y.device(), {view.of(y.data()), labels, ignore_label.has_value(),
                                   ignore_label.value_or(-1), result});
  return call.unrecorded(result);
}

}  // namespace catena::functions
