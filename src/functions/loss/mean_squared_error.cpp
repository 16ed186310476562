// mean_squared_error: the difference and one sum of squares.
#include "catena/functions/loss/mean_squared_error.h"

#include "catena/array/math.h"
#include "catena/kernels/reduce.h"
#include "functions/common/loss_parts.h"

namespace catena::functions {
namespace {

// Gradient (x0 - x1) * 2 gy / size and its negative; the difference is kept. 16-bit floats may not
// hold the factor, so it is of the dtype that they are computed in.
class MeanSquaredErrorNode final : public FunctionNode {
 public:
  explicit MeanSquaredErrorNode(const Array& difference) : difference_(difference) {}
  std::string label() const override { return "MeanSquaredError"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    const double factor = 2.0 / static_cast<double>(std::max<int64_t>(difference_.size(), 1));
    if (context.create_graph()) return set_composed(context, gy, factor);
    const Dtype d = difference_.dtype(), wide = compute_dtype(d);
    const Array scale = catena::multiply(gy.data(), factor, Out(wide));
    for (int i = 0; i < 2; ++i) {
      if (!context.needs(i)) continue;
      give(context, i, difference_.shape(), difference_, [&](const Array& gx) {
        Out rounded(gx);
        rounded.dtype = wide;
        catena::multiply(difference_, i == 0 ? scale : catena::negative(scale), rounded);
      });
    }
  }

 private:
  void set_composed(BackwardContext& context, const Variable& gy, double factor) const {
    const Dtype d = difference_.dtype(), wide = compute_dtype(d);
    const Variable scale = cast(gy, wide) * factor;
    const Variable difference = cast(context.input(0) - context.input(1), wide);
    if (context.needs(0)) context.set_grad(0, cast(difference * scale, d));
    if (context.needs(1)) context.set_grad(1, cast(difference * negative(scale), d));
  }

  Array difference_;
};

}  // namespace

Variable mean_squared_error(const VariableOperand& operand0, const VariableOperand& operand1,
                            Reduction reduction) {
  FunctionCall call("MeanSquaredError", Autocast::kFloat32, operand0, operand1);
  const Variable &x0 = call[0], &x1 = call[1];
  check_pair(call, "x0", "x1");
  if (reduction != Reduction::kMean)
    return reduced(square(widened(x0) - widened(x1)), reduction, x0.dtype());
  const Array difference = x0.data() - x1.data();
  const Dtype sums = compute_dtype(x0.dtype());
  const Array total = Array::uninitialized(Shape(size_t(difference.ndim()), 1), sums, x0.device());
  if (difference.size() > 0) {
    kernels::reduce(x0.device(), ReduceCall{ReduceOp::kSumOfSquares, &difference, &total,
                                            (1u << difference.ndim()) - 1});
  } else {
    total.fill(0.0);
  }
  const Array loss = Array::uninitialized({}, x0.dtype(), x0.device());
  Out rounded(loss);
  rounded.dtype = sums;
  catena::multiply(total.reshape({}),
                   1.0 / static_cast<double>(std::max<int64_t>(difference.size(), 1)), rounded);
  return call.record(loss, [&] {
    auto node = make_node<MeanSquaredErrorNode>(difference);
    node->save_input(0, x0);
    node->save_input(1, x1);
    return node;
  });
}

}  // namespace catena::functions
