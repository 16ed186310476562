// transpose and swapaxes: views both ways.
#include "catena/functions/array/transpose.h"

#include "functions/common/axes.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

class TransposeNode final : public FunctionNode {
 public:
  TransposeNode(const Axes& inverse, const char* label) : inverse_(inverse), label_(label) {}
  std::string label() const override { return label_; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (gy.defined()) context.set_grad(0, transpose(gy, inverse_));
  }

 private:
  Axes inverse_;
  const char* label_;
};

Variable apply_transpose(const Variable& x, const Axes& axes, const char* label) {
  Axes order = axes;
  if (order.empty()) {
    for (int i = x.ndim() - 1; i >= 0; --i) order.push_back(i);
  }
  const Array y = x.ndim() == 0 ? x.data() : x.data().transpose(order);
  return record(label, x, y, [&] { return make_node<TransposeNode>(inverse_order(order), label); });
}

}  // namespace

Variable transpose(const VariableOperand& x, const Axes& axes) {
  return apply_transpose(x.variable("transpose"), axes, "Transpose");
}

Variable swapaxes(const VariableOperand& operand, Axis axis1, Axis axis2) {
  const Variable& x = operand.variable("swapaxes");
  Axes order;
  for (int i = 0; i < x.ndim(); ++i) order.push_back(i);
  std::swap(order[size_t(normalize_axis("swapaxes", axis1, x.ndim()))],
            order[size_t(normalize_axis("swapaxes", axis2, x.ndim()))]);
  return apply_transpose(x, order, "Swapaxes");
}

}  // namespace catena::functions
