// Triangles of matrices.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Copies of the last two axes with zeros above (tril) or below (triu) the k-th diagonal; 0 is the
// main one, positive ones are above it. A 1-d x is each row of a square matrix. Any dtype. The
// gradient is that of the elements kept, zero elsewhere, also where x is not finite. ShapeError for
// a 0-d x.
Variable tril(const VariableOperand& x, int64_t k = 0);
Variable triu(const VariableOperand& x, int64_t k = 0);

}  // namespace catena::functions
