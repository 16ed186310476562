// Gated linear units: one half of the numbers decides how much of the other half passes.
#pragma once

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// f(gate) * x, number by number (N. Shazeer, GLU Variants Improve Transformer, 2020). gate and x:
// of one shape and floating dtype, on one device, with any strides. With `packed` alone its last
// axis, of an even extent, holds first the gates and then what they multiply, as a product by
// stacked weights gives them; the result has half of that extent. (PyTorch's glu has the gates
// behind.) Results keep the memory order of gate or packed. 16-bit floats are computed in float32
// and rounded once.
//
// One kernel forward, and one backward for both gradients; operands whose rows have gaps between
// neighbours are copied first. Gradients of any order. InvalidType for other shapes and dtypes.

// With f = silu.
Variable swiglu(const VariableOperand& gate, const VariableOperand& x);
Variable swiglu(const VariableOperand& packed);
// With f = gelu.
Variable geglu(const VariableOperand& gate, const VariableOperand& x);
Variable geglu(const VariableOperand& packed);
// With f = gelu_tanh.
Variable geglu_tanh(const VariableOperand& gate, const VariableOperand& x);
Variable geglu_tanh(const VariableOperand& packed);

}  // namespace catena::functions
