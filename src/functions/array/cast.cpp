// cast
#include "catena/functions/array/cast.h"

#include "functions/common/support.h"

namespace catena::functions {
namespace {

class CastNode final : public FunctionNode {
 public:
  std::string label() const override { return "Cast"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (gy.defined()) context.set_grad(0, cast(gy, inputs()[0]->dtype));
  }
};

}  // namespace

Variable cast(const VariableOperand& operand, Dtype dtype) {
  const Variable& x = operand.variable("cast");
  if (x.dtype() == dtype) return x;
  const Array y = x.data().astype(dtype);
  if (!is_float(dtype) || !is_float(x.dtype())) return Variable::constant(y);
  return record("cast", x, y, [] { return make_node<CastNode>(); });
}

}  // namespace catena::functions
