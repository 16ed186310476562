// max and min: one kernel forward; the gradient goes through a mask.
#include "catena/functions/math/minmax.h"

#include "catena/array/reduction.h"
#include "catena/functions/array/reshape.h"
#include "functions/common/axes.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

class ExtremeNode final : public FunctionNode {
 public:
  ExtremeNode(const Shape& kept, const char* label) : kept_(kept), label_(label) {}
  std::string label() const override { return label_; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    const Array x = context.input(0).data();
    const Array mask = equal(x, context.output().data().reshape(kept_));
    context.set_grad(0, where(mask, reshape(gy, kept_), 0.0));
  }

 private:
  Shape kept_;
  const char* label_;
};

Variable apply_extreme(const char* label, bool maximum, const VariableOperand& operand,
                       const ReduceAxes& over, bool keepdims) {
  FunctionCall call(label, Autocast::kNone, operand);
  const Variable& x = call[0];
  check_axes(call, x.data(), over.axes);
  const Shape kept = with_ones(x.shape(), normalize_axes(label, over.axes, x.ndim()));
  const Array y = maximum ? amax(x.data(), over, keepdims) : amin(x.data(), over, keepdims);
  return call.record(y, [&] {
    auto node = make_node<ExtremeNode>(kept, label);
    node->save_input(0, x);
    node->save_output(0, y);
    return node;
  });
}

}  // namespace

Variable max(const VariableOperand& x, const ReduceAxes& axes, YesNo keepdims) {
  return apply_extreme("Max", true, x, axes, keepdims);
}
Variable min(const VariableOperand& x, const ReduceAxes& axes, YesNo keepdims) {
  return apply_extreme("Min", false, x, axes, keepdims);
}

}  // namespace catena::functions
