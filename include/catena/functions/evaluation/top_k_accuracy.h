// The share of labels among the best scores.
#pragma once

#include <optional>

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Share of samples whose label is one of the k classes with the largest scores, among those whose
// label is not ignore_label; 0 when all are ignored. Of equal scores the first come first, so that
// k = 1 is accuracy; k of at least the number of classes counts every label. A sample with a NaN
// among its scores counts as wrong. y: (n, classes, d1, ...) floats, t: int32 or int64 (n, d1,
// ...). 0-d float32 (float64 for float64 y). Labels outside [0, classes) as in accuracy. ValueError
// unless k >= 1.
Variable top_k_accuracy(const VariableOperand& y, const VariableOperand& t, int64_t k,
                        std::optional<int32_t> ignore_label = {});

}  // namespace catena::functions
