// The share of right answers.
#pragma once

#include <optional>

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Share of samples whose largest score is that of their label, among those whose label is not
// ignore_label; 0 when all are ignored. A sample with a NaN among its scores counts as wrong. y:
// (n, classes, d1, ...) floats, t: int32 or int64 (n, d1, ...); trailing axes of extent 1 may be
// missing in t. 0-d float32 (float64 for float64 y). Without ignore_label, -1 counts as wrong.
// Another label outside [0, classes) is a ValueError on a CPU; on a GPU, where looking would wait
// for the device, its sample counts as wrong.
Variable accuracy(const VariableOperand& y, const VariableOperand& t,
                  std::optional<int32_t> ignore_label = {});

}  // namespace catena::functions
