// Elements around an array.
#pragma once

#include "catena/array/manipulation.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// pad of manipulation.h: a constant, or elements of x again. The gradient of an element is the sum
// over its places in the result. ValueError for a negative width and where kEdge, kReflect,
// kSymmetric or kWrap would extend an axis without elements, ShapeError for another number of
// widths than axes. Nothing is decided or copied by the host, so that every mode can be captured on
// a GPU.
Variable pad(const VariableOperand& x, const PadWidths& widths, PadMode mode = PadMode::kConstant,
             const Scalar& value = 0);
Variable pad(const VariableOperand& x, int64_t width, PadMode mode = PadMode::kConstant,
             const Scalar& value = 0);

}  // namespace catena::functions
