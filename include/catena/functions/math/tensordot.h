// NumPy's products of arrays of any number of axes.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Compositions of products of matrices, or of elements where nothing is summed; differentiable any
// number of times. Operands are floats of one dtype on one device, else InvalidType and
// DeviceError; a number is a ValueError. Extents that differ are a ShapeError. A sum over an axis
// of extent 0 is 0.

// The last axis of a with the second last of b, or its only one: for two matrices their product,
// for two vectors a sum. The result has the other axes of a, then those of b. With a 0-d operand
// a * b.
Variable dot(const VariableOperand& a, const VariableOperand& b);
// The last axis of a with the last of b; with a 0-d operand a * b.
Variable inner(const VariableOperand& a, const VariableOperand& b);
// The sum of the products of all elements, in C order: 0-d. The operands have one size.
Variable vdot(const VariableOperand& a, const VariableOperand& b);
// Each element of a times each of b: (a.size(), b.size()).
Variable outer(const VariableOperand& a, const VariableOperand& b);
// The Kronecker product: each element of a times all of b, as blocks in the order of a's elements.
// The operand with fewer axes gets ones before its own; axis i of the result has a.shape(i) *
// b.shape(i) entries. ShapeError for more than 12 axes.
Variable kron(const VariableOperand& a, const VariableOperand& b);
// The last `axes` axes of a with the first of b. ValueError for a number that is negative or above
// the axes of an operand.
Variable tensordot(const VariableOperand& a, const VariableOperand& b, int64_t axes = 2);
// axes_a[i] of a with axes_b[i] of b. ValueError for lists of different lengths and for an axis
// twice, IndexError for one out of range.
Variable tensordot(const VariableOperand& a, const VariableOperand& b, const Axes& axes_a,
                   const Axes& axes_b);

}  // namespace catena::functions
