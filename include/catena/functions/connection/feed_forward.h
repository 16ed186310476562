// The two products at each position of a transformer.
#pragma once

#include <cstdint>

#include "catena/functions/variable_operand.h"

namespace catena::functions {

// What is between the two products of a block: relu, gelu or gelu_tanh.
enum class TransformerActivation : uint8_t { kRelu, kGelu, kGeluTanh };

// Options of feed_forward.
struct FeedForwardOptions {
  TransformerActivation activation = TransformerActivation::kRelu;
};

// linear(activation(linear(x, W1, b1)), W2, b2) for each of the leading axes: x (..., in) gives
// (..., out). W1: (inner, in), b1: (inner), W2: (out, inner), b2: (out); both biases or none. One
// floating dtype and device. InvalidType when they do not fit, ValueError for another activation.
//
// One node. It keeps x, what goes into the activation (but for relu) and what comes out of it. On
// GPUs gelu_tanh of 16-bit numbers is part of the first product, in float32 as the product is;
// backward one kernel makes the gradient through any activation and that of b1. Gradients of any
// order; those of higher order make the first product again.
Variable feed_forward(const VariableOperand& x, const VariableOperand& W1,
                      const VariableOperand& b1, const VariableOperand& W2,
                      const VariableOperand& b2, const FeedForwardOptions& options = {});
Variable feed_forward(const VariableOperand& x, const VariableOperand& W1,
                      const VariableOperand& W2, const FeedForwardOptions& options = {});

}  // namespace catena::functions
