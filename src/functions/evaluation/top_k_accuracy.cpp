// top_k_accuracy: how many classes come before the label.
#include "catena/functions/evaluation/top_k_accuracy.h"

#include "catena/array/creation.h"
#include "catena/array/logic.h"
#include "catena/array/reduction.h"
#include "catena/autograd/mean.h"
#include "functions/common/along_axis.h"
#include "functions/common/scored_labels.h"

namespace catena::functions {
namespace {

// Of each sample, (outer, inner): whether fewer than k classes are before the label; false for a
// label out of range and for NaN among the scores.
Array is_among(const Array& y, const Array& t, int64_t k) {
  const int64_t classes = y.shape()[1];
  const Array label = t.expand_dims(1);
  const Array number = arange(classes, {Dtype::kInt32, y.device()}).reshape({1, classes, 1});
  const Array own = pick_along_axis(y, catena::clip(label, 0, classes - 1), 1);
  const Array before = logical_or(greater(y, own), logical_and(equal(y, own), less(number, label)));
  const Array known = logical_and(greater_equal(t, 0), less(t, classes));
  const Array numbers = logical_not(any(isnan(y), 1));
  return logical_and(logical_and(known, numbers), less(catena::sum(before, 1), k));
}

}  // namespace

Variable top_k_accuracy(const VariableOperand& y_operand, const VariableOperand& t_operand,
                        int64_t k, std::optional<int32_t> ignore_label) {
  FunctionCall call("TopKAccuracy", Autocast::kNone, y_operand, t_operand);
  check_scored_labels(call, "top_k_accuracy(scores, labels, k)", ignore_label);
  CATENA_CHECK(ValueError, k >= 1, call.label(), ": expected a k of at least 1, got ", k);
  const Array& y = call[0].data();
  const Dtype wide = compute_dtype(y.dtype());
  if (y.size() == 0) return call.unrecorded(zeros({}, {wide, y.device()}));
  const AxisView view(y.shape(), 1);
  const Array t = Labels::as_int32(call[1].data()).reshape({view.outer, view.inner});
  Array right = is_among(view.of(y), t, k);
  Array count = full({}, static_cast<double>(t.size()), {wide, y.device()}), counted;
  if (ignore_label) {
    const Array counts = not_equal(t, *ignore_label);
    right = logical_and(right, counts);
    counted = catena::sum(counts, {.dtype = wide});
    count = catena::maximum(counted, 1.0);
  }
  const Variable result = call.unrecorded(catena::sum(right, {.dtype = wide}) / count);
  if (ignore_label) declare_mean(result, {counted, static_cast<double>(t.size())});
  return result;
}

}  // namespace catena::functions
