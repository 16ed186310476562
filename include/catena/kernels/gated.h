// Gated activations and their gradients.
#pragma once

#include <cstdint>

#include "catena/kernels/slot.h"

namespace catena {

class Array;

// What is made of a gate: x / (1 + exp(-x)), x Phi(x) with the normal distribution function Phi,
// and the approximation 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
enum class GateFunction : uint8_t { kSilu, kGelu, kGeluTanh };

// Rows of adjacent numbers: row r begins r * step elements behind the first one of the array, whose
// shape and strides are not read. Rows that are written do not overlap, others may; steps may be
// negative.
struct GatedRows {
  const Array* array = nullptr;
  int64_t step = 0;
};

// y = f(gate) * x, number by number, for `rows` rows of `columns` numbers, both at least 1. All
// arrays are of one floating dtype; 16-bit floats are computed in float32 and rounded when they are
// stored. y is not in the memory of an operand.
struct GatedCall {
  GateFunction function;
  int64_t rows, columns;
  GatedRows gate, x, y;
};

// The gradients of gate and x, gy * x * f'(gate) and gy * f(gate). One without an array is not
// wanted.
struct GatedGradCall {
  GateFunction function;
  int64_t rows, columns;
  GatedRows gate, x, gy, g_gate, gx;
};

namespace kernels {

// The slots of the calls above.
extern Slot<GatedCall> gated;
extern Slot<GatedGradCall> gated_grad;

}  // namespace kernels

}  // namespace catena
