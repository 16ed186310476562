// softmax and log_softmax: one node, with one kernel each way.
#include "catena/functions/activation/softmax.h"

#include "catena/functions/math/sum.h"
#include "catena/kernels/softmax.h"
#include "functions/common/axes.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

class SoftmaxNode final : public FunctionNode {
 public:
  SoftmaxNode(int axis, bool log) : axis_(axis), log_(log) {}
  std::string label() const override { return log_ ? "LogSoftmax" : "Softmax"; }

  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    const Variable y = context.output();
    if (context.create_graph()) return context.set_grad(0, composed(y, gy));
    const AxisView view(y.shape(), axis_);
    const Array ys = view.of(y.data()), gs = view.of(gy.data());
    give(context, 0, y.shape(), y.data(), [&](const Array& gx) {
      if (gx.size() > 0)
        kernels::softmax_grad(gx.device(), {ys, gs, log_, gx.reshape(view.shape())});
    });
  }

 private:
  Variable composed(const Variable& y, const Variable& gy) const {
    if (log_) return gy - exp(y) * sum(gy, axis_, true);
    return y * (gy - sum(y * gy, axis_, true));
  }
  int axis_;
  bool log_;
};

void check_softmax(const FunctionCall& call, int64_t axis) {
  const Array& x = call[0].data();
  const TypeOf in(x, "x");
  const Checks checks(call.named(), in);
  checks.require_float(in);
  const bool may_be_default = axis == 1 && x.ndim() == 1;
  require_axis(call, in, axis,
               may_be_default ? " It is 1 where none is given: give 0 for one sample." : "");
}

Variable apply_softmax(const char* label, const VariableOperand& operand, Axis axis, bool log) {
  // Logarithms go into losses: 16 bits would cut off their digits.
  FunctionCall call(label, log ? Autocast::kFloat32 : Autocast::kNone, operand);
  const Variable& x = call[0];
  check_softmax(call, axis);
  const int a = normalize_axis(label, axis, x.ndim());
  const AxisView view(x.shape(), a);
  const Array y = Array::uninitialized(x.shape(), x.dtype(), x.device());
  if (y.size() > 0) kernels::softmax(y.device(), {view.of(x.data()), log, y.reshape(view.shape())});
  return call.record(y, [&] {
    auto node = make_node<SoftmaxNode>(a, log);
    node->save_output(0, y);
    return node;
  });
}

}  // namespace

Variable softmax(const VariableOperand& x, Axis axis) {
  return apply_softmax("Softmax", x, axis, false);
}
Variable log_softmax(const VariableOperand& x, Axis axis) {
  return apply_softmax("LogSoftmax", x, axis, true);
}

}  // namespace catena::functions
