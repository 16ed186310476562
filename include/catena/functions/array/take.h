// Elements chosen by positions.
#pragma once

#include "catena/array/axes.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Elements of x along the axis at integer positions, of which negative ones count from the end; the
// shape of the positions takes the place of the axis. Without an axis: of the flattened x. One
// kernel each way; gradients of equal positions add up. A position out of range is an IndexError on
// a CPU; on a GPU, where looking would wait for the device, it gives NaN and takes no gradient.
// InvalidType for positions that are not integers, IndexError for an axis out of range.
Variable take(const VariableOperand& x, const VariableOperand& indices, OptionalAxis axis = none);
// y[.., i, ..] = x[.., indices[.., i, ..], ..] along the axis: the function that PyTorch calls
// gather. indices: integers with as many axes as x, which broadcast with it outside the axis
// (ShapeError). Positions out of range as for take.
Variable take_along_axis(const VariableOperand& x, const VariableOperand& indices, Axis axis);

}  // namespace catena::functions
