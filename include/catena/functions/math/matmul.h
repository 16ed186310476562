// Products of matrices and of stacks of them.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// Matrix product; a vector is a column. The result always has two axes. Operands of one floating
// dtype, else InvalidType.
Variable matmul(const VariableOperand& a, const VariableOperand& b, bool transa = false,
                bool transb = false);
// Products of stacks: (batch, m, n), or (batch, n) for columns; equal batch extents. The result has
// three axes.
Variable batch_matmul(const VariableOperand& a, const VariableOperand& b, bool transa = false,
                      bool transb = false);

}  // namespace catena::functions
