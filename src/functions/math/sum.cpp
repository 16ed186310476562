// Sums and means: one kernel forward, a broadcast view back.
#include "catena/functions/math/sum.h"

#include "catena/array/reduction.h"
#include "catena/functions/array/broadcast.h"
#include "catena/functions/array/reshape.h"
#include "functions/common/axes.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

// Sums: over axes, or down to a shape. The gradient is a broadcast view.
class SumNode final : public FunctionNode {
 public:
  SumNode(const Shape& kept, double scale, const char* label)
      : kept_(kept), scale_(scale), label_(label) {}
  std::string label() const override { return label_; }
  void backward(BackwardContext& context) override {
    Variable gy = context.grad_output();
    if (!gy.defined()) return;
    if (scale_ != 1) gy = gy * scale_;
    context.set_grad(0, broadcast_to(reshape(gy, kept_), inputs()[0]->shape));
  }

 private:
  Shape kept_;  // of the output, with extent 1 at the summed axes
  double scale_;
  const char* label_;
};

Variable apply_sum(const char* label, const VariableOperand& operand, const ReduceAxes& over,
                   bool keepdims, bool average) {
  const Variable& x = operand.variable(label);
  check_axes(label, x.data(), over.axes);
  const Axes all = normalize_axes(label, over.axes, x.ndim());
  const Shape kept = with_ones(x.shape(), all);
  const Array y =
      average ? catena::mean(x.data(), over, keepdims) : catena::sum(x.data(), over, keepdims);
  const double scale =
      average && x.size() > 0 ? static_cast<double>(y.size()) / static_cast<double>(x.size()) : 1;
  return record(label, x, y, [&] { return make_node<SumNode>(kept, scale, label); });
}

}  // namespace

Variable sum(const VariableOperand& x, const ReduceAxes& axes, YesNo keepdims) {
  return apply_sum("Sum", x, axes, keepdims, false);
}
Variable mean(const VariableOperand& x, const ReduceAxes& axes, YesNo keepdims) {
  return apply_sum("Mean", x, axes, keepdims, true);
}
Variable sum_to(const VariableOperand& operand, const Shape& shape) {
  const Variable& x = operand.variable("sum_to");
  if (x.shape() == shape) return x;
  const Array y = catena::sum_to(x.data(), shape);
  return record("sum_to", x, y, [&] {
    Shape kept(size_t(x.ndim() - shape.ndim()), 1);
    kept.insert(kept.end(), shape.begin(), shape.end());
    return make_node<SumNode>(kept, 1.0, "SumTo");
  });
}

}  // namespace catena::functions
