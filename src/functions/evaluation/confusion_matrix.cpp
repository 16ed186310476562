// confusion_matrix, and precision, recall and f1_score, which are made of its counts.
#include "catena/functions/evaluation/confusion_matrix.h"

#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/logic.h"
#include "catena/array/reduction.h"
#include "functions/common/scored_labels.h"

namespace catena::functions {
namespace {

// int64 (classes, classes + 1): samples by label and answer, the last column those without answer.
Array counts_of(const FunctionCall& call, std::optional<int32_t> ignore_label) {
  check_scored_labels(call, "confusion_matrix(scores, labels)", ignore_label);
  const Array& y = call[0].data();
  const int64_t classes = y.shape()[1], columns = classes + 1;
  const Array cells = zeros({classes * columns + 1}, {Dtype::kInt64, y.device()});
  if (y.size() > 0) {
    const AxisView view(y.shape(), 1);
    const Array scores = view.of(y);
    const Array t = Labels::as_int32(call[1].data()).reshape({view.outer, view.inner});
    const Array answer = catena::where(any(isnan(scores), 1), classes, argmax(scores, 1));
    Array counts = logical_and(greater_equal(t, 0), less(t, classes));
    if (ignore_label) counts = logical_and(counts, not_equal(t, *ignore_label));
    // Samples that do not count go into one more cell.
    const Array cell =
        catena::where(counts, t.astype(Dtype::kInt64) * columns + answer, classes * columns);
    scatter_add(cells, cell.reshape({cell.size()}),
                ones({cell.size()}, {Dtype::kInt64, y.device()}), 0, OutOfRange::kClip);
  }
  return cells(Slice(0, classes * columns)).reshape({classes, columns});
}

struct ClassCounts {
  Array right, answers, samples;  // floats, (classes)
};

ClassCounts class_counts(const FunctionCall& call, std::optional<int32_t> ignore_label) {
  const Array counts = counts_of(call, ignore_label).astype(compute_dtype(call[0].data().dtype()));
  const Array square = counts(Slice(), Slice(0, counts.shape()[0]));
  return {square.diagonal(), catena::sum(square, 0), catena::sum(counts, 1)};
}

Array ratio(const Array& part, const Array& whole) {
  const Array some = greater(whole, 0.0);
  return catena::where(some, part / catena::where(some, whole, 1.0), 0.0);
}

// `whole` makes what the right answers are divided by.
template <class Whole>
Variable measure(const char* name, const VariableOperand& y, const VariableOperand& t,
                 ClassAverage average, std::optional<int32_t> ignore_label, double factor,
                 Whole whole) {
  FunctionCall call(name, Autocast::kNone, y, t);
  const ClassCounts counts = class_counts(call, ignore_label);
  const Array all = whole(counts);
  if (average == ClassAverage::kMicro)
    return call.unrecorded(ratio(catena::sum(counts.right) * factor, catena::sum(all)));
  const Array each = ratio(counts.right * factor, all);
  if (average == ClassAverage::kNone) return call.unrecorded(each);
  const Array occurs = greater(counts.answers + counts.samples, 0.0);
  return call.unrecorded(ratio(catena::sum(each), catena::sum(occurs, {.dtype = each.dtype()})));
}

}  // namespace

Variable confusion_matrix(const VariableOperand& y, const VariableOperand& t,
                          std::optional<int32_t> ignore_label) {
  FunctionCall call("ConfusionMatrix", Autocast::kNone, y, t);
  const Array counts = counts_of(call, ignore_label);
  return call.unrecorded(counts(Slice(), Slice(0, counts.shape()[0])).copy());
}

Variable precision(const VariableOperand& y, const VariableOperand& t, ClassAverage average,
                   std::optional<int32_t> ignore_label) {
  return measure("Precision", y, t, average, ignore_label, 1,
                 [](const ClassCounts& c) { return c.answers; });
}
Variable recall(const VariableOperand& y, const VariableOperand& t, ClassAverage average,
                std::optional<int32_t> ignore_label) {
  return measure("Recall", y, t, average, ignore_label, 1,
                 [](const ClassCounts& c) { return c.samples; });
}
Variable f1_score(const VariableOperand& y, const VariableOperand& t, ClassAverage average,
                  std::optional<int32_t> ignore_label) {
  return measure("F1Score", y, t, average, ignore_label, 2,
                 [](const ClassCounts& c) { return c.answers + c.samples; });
}

}  // namespace catena::functions
