// copy between devices
#include "catena/functions/array/copy.h"

#include "functions/common/support.h"

namespace catena::functions {
namespace {

class CopyNode final : public FunctionNode {
 public:
  std::string label() const override { return "Copy"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (gy.defined()) context.set_grad(0, copy(gy, inputs()[0]->device));
  }
};

}  // namespace

Variable copy(const VariableOperand& operand, Device device) {
  const Variable& x = operand.variable("copy");
  return record("copy", x, x.data().to(device), [] { return make_node<CopyNode>(); });
}

}  // namespace catena::functions
