// Products of matrices and of stacks of them.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Matrix product; a vector is a column. Of operands with more than two axes the last two are
// matrices, and those before broadcast as in NumPy: (b, h, t, d) by (b, h, d, t) is (b, h, t, t).
// The result has two axes, or as many as the operand with most. Products of a stack with one matrix
// are one product, whose gradient of the matrix is summed over all rows in the product's precision.
// Operands of one floating dtype, else InvalidType; ShapeError where leading axes do not broadcast.
Variable matmul(const VariableOperand& a, const VariableOperand& b, bool transa = false,
                bool transb = false);
// Products of stacks: (batch, m, n), or (batch, n) for columns; equal batch extents. The result has
// three axes.
Variable batch_matmul(const VariableOperand& a, const VariableOperand& b, bool transa = false,
                      bool transb = false);

}  // namespace catena::functions
