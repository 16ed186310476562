// identity
#include "catena/functions/math/identity.h"

#include "functions/common/support.h"

namespace catena::functions {
namespace {

class IdentityNode final : public FunctionNode {
 public:
  std::string label() const override { return "Identity"; }
  void backward(BackwardContext& context) override { context.set_grad(0, context.grad_output()); }
};

}  // namespace

Variable identity(const VariableOperand& operand) {
  const Variable& x = operand.variable("identity");
  return record("identity", x, x.data(), [] { return make_node<IdentityNode>(); });
}
Variables identity(const Variables& xs) {
  Variables ys;
  for (const Variable& x : xs) ys.push_back(identity(VariableOperand(x)));
  return ys;
}

}  // namespace catena::functions
