// Gradients of several operands that one kernel makes together.
#pragma once

#include "catena/array/array.h"
#include "catena/autograd/function_node.h"

namespace catena::functions {

// Whether there is an operand at `place` (below 0: none) whose gradient is wanted.
inline bool wants(const BackwardContext& context, int place) {
  return place >= 0 && context.needs(place);
}

// Where a kernel writes the gradient of an operand: a new array, or the memory where it shall be.
struct GradientTarget {
  Array array;  // undefined: the gradient is not wanted
  bool accumulate = false, in_place = false;
  const Array* pointer() const { return array.defined() ? &array : nullptr; }
  // What the kernel has written is the gradient of the operand at `place`.
  void give(BackwardContext& context, int place) const;
};

// For the operand at `place`, contiguous. `shared`: its parameter stands at several places, whose
// gradients the kernel writes at once, so that each needs an array of its own.
GradientTarget gradient_target(BackwardContext& context, int place, const Shape& shape, Dtype dtype,
                               Device device, bool shared);

// Zeros for all operands of the node whose gradient is wanted.
void give_zeros(BackwardContext& context, const FunctionNode& node);

}  // namespace catena::functions
