// Axes at other places, and quarter turns: views.
#pragma once

#include "catena/array/axes.h"
#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Each axis of `sources` at the place of the same number in `destinations`; the others keep their
// order. Any dtype. ValueError for lists of different lengths and for an axis or a place twice,
// IndexError for one out of range. A view, whose gradient is one.
Variable moveaxis(const VariableOperand& x, const AxisList& sources, const AxisList& destinations);
// The axis before the one that is at `start`, at the end for a start of x.ndim(): NumPy's rollaxis.
// IndexError for an axis out of range and for a start outside [-x.ndim(), x.ndim()].
Variable rollaxis(const VariableOperand& x, Axis axis, int64_t start = 0);
// By quarter turns, backwards for a negative number, from the first towards the second of two axes.
// ShapeError for fewer than two axes, ValueError unless `axes` names two different ones, IndexError
// for one out of range.
Variable rot90(const VariableOperand& x, int64_t times = 1, const Axes& axes = {0, 1});

}  // namespace catena::functions
