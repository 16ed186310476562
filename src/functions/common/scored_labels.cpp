#include "functions/common/scored_labels.h"

#include "catena/core/entry_scope.h"
#include "functions/common/advice.h"

namespace catena::functions {

void check_scored_labels(const FunctionCall& call, const char* usage,
                         std::optional<int32_t> ignore_label) {
  const Array &y = call[0].data(), &t = call[1].data();
  const TypeOf scores(y, "y"), labels(t, "t");
  const auto checks =
      Checks(call.named(), scores, labels).advised([&] { return label_advice(usage, y, t); });
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
  call.require_one_device();
  if (!y.device().is_cpu()) return;
  const EntryScope named(call.name());
  Labels::check(t, y.shape()[1], ignore_label.value_or(-1));
}

}  // namespace catena::functions
