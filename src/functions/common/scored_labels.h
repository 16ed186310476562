// Scores and labels of the measures of classification.
#pragma once

#include <optional>

#include "functions/common/labels.h"
#include "functions/common/support.h"

namespace catena::functions {

// InvalidType unless operand 0 holds scores (n, classes, ...) and operand 1 labels (n, ...);
// trailing axes of extent 1 may be missing in t. On a CPU also the ValueError of a label out of
// range. `usage`: as in label_advice.
void check_scored_labels(const FunctionCall& call, const char* usage,
                         std::optional<int32_t> ignore_label);

// InvalidType of the checks unless labels, in int32 or int64, are (n, ...) where scores are
// (n, classes, ...).
template <class Checks>
void require_label_each(const Checks& checks, const TypeOf& scores, const TypeOf& labels) {
  if (labels.array->dtype() != Dtype::kInt64) checks.require(labels.dtype() == Dtype::kInt32);
  checks.require(scores.ndim() >= 2, labels.ndim() == scores.ndim() - 1,
                 scores.shape(0) == labels.shape(0));
  for (int i = 1; i < labels.array->ndim(); ++i)
    checks.require(scores.shape(i + 1) == labels.shape(i));
}

}  // namespace catena::functions
