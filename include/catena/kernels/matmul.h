// Matrix products.
#pragma once

#include <cstdint>

#include "catena/kernels/slot.h"

namespace catena {

class Array;

// What is applied to the product and its bias.
enum class Activation : uint8_t { kNone, kRelu };

// output = activation(a @ b + bias) + (accumulate ? output : 0). 2-d, or 3-d with equal batch
// extents (stride 0 for a broadcast batch). In each operand one of the two last axes has stride
// itemsize and the other at least its extent times itemsize. All of one dtype (also the integers
// and bool); or a and b of a 16-bit float and output of float32, without bias and activation. bias:
// null or 1-d of length n. accumulate and activation exclude each other. k may be 0.
struct MatmulCall {
  const Array* a;
  const Array* b;
  const Array* output;
  const Array* bias = nullptr;
  Activation activation = Activation::kNone;
  bool accumulate = false;
};

namespace kernels {

// The slots of the calls above.
extern Slot<MatmulCall> matmul;

}  // namespace kernels

}  // namespace catena
