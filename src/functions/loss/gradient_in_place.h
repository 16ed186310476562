// Gradients that the forward pass of a loss has written over the scores.
#pragma once

#include "catena/array/array.h"
#include "catena/autograd/function_call.h"
#include "catena/autograd/function_node.h"

namespace catena::functions {

// ValueError unless the values of the variable may be overwritten: some function has made them, not
// the user, and their memory is writable. Views are followed to what they show.
void check_may_overwrite(const FunctionCall& call, const Variable& x);

// Hands the gradient on, once. Its array is that of input 0, or a copy of it.
class GradientInPlaceNode final : public FunctionNode {
 public:
  // gradient: contiguous, (outer, classes, inner), of a loss, or of (outer, inner) losses, whose
  // gradients are `expected` (0-d of its dtype; undefined: 1). name: of the function.
  GradientInPlaceNode(const char* name, const Array& gradient, const Array& expected)
      : name_(name), gradient_(gradient), expected_(expected) {}
  // The gradient is in the memory of input x, where backward notices later writes.
  void is_in(const Variable& x) {
    save_input(0, x);
    watches_ = true;
  }
  std::string label() const override { return name_; }
  void backward(BackwardContext& context) override;

 private:
  const char* name_;
  Array gradient_, expected_;
  bool watches_ = false;
};

}  // namespace catena::functions
