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

}  // namespace catena::functions
