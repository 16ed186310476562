// mean_squared_error: the difference and one sum of squares.
#include "catena/functions/loss/mean_squared_error.h"

#include "catena/core/memory_profile.h"
#include "catena/kernels/reduce.h"
#include "functions/advice.h"
#include "functions/support.h"

namespace catena::functions {
namespace {

// Gradient (x0 - x1) * 2 gy / size and its negative; the difference is kept.
class MeanSquaredErrorNode final : public FunctionNode {
 public:
  explicit MeanSquaredErrorNode(const Array& difference) : difference_(difference) {}
  std::string label() const override { return "MeanSquaredError"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    const Variable scale =
        gy * (2.0 / static_cast<double>(std::max<int64_t>(difference_.size(), 1)));
    const Variable d = context.create_graph() ? context.input(0) - context.input(1)
                                              : Variable::constant(difference_);
    if (context.needs(0)) context.set_grad(0, d * scale);
    if (context.needs(1)) context.set_grad(1, d * negative(scale));
  }

 private:
  Array difference_;
};

std::string advice(const Array& x0, const Array& x1) {
  const std::string conversion = dtype_advice(x0, x1);
  return message("Expected are two of one floating dtype and shape.", conversion.empty() ? "" : " ",
                 conversion);
}

void check_types(const Array& x0, const Array& x1) {
  const TypeOf a(x0, "x0"), b(x1, "x1");
  const auto checks = Checks("MeanSquaredError", a, b).advised([&] { return advice(x0, x1); });
  checks.require(a.kind() == 'f', b.dtype() == a.dtype(), a.ndim() == b.ndim());
  for (int i = 0; i < x0.ndim(); ++i) checks.require(a.shape(i) == b.shape(i));
}

}  // namespace

Variable mean_squared_error(const VariableOperand& operand0, const VariableOperand& operand1) {
  const Variable& x0 = operand0.variable("mean_squared_error");
  const Variable& x1 = operand1.variable("mean_squared_error");
  const CallScope scope("mean_squared_error");
  check_types(x0.data(), x1.data());
  const Array difference = x0.data() - x1.data();
  const Array total =
      Array::uninitialized(Shape(size_t(difference.ndim()), 1), x0.dtype(), x0.device());
  if (difference.size() > 0) {
    kernels::reduce(x0.device(), ReduceCall{ReduceOp::kSumOfSquares, &difference, &total,
                                            (1u << difference.ndim()) - 1});
  } else {
    total.fill(0.0);
  }
  const Array loss =
      total.reshape({}) * (1.0 / static_cast<double>(std::max<int64_t>(difference.size(), 1)));
  const Variable inputs[2] = {x0, x1};
  return record("mean_squared_error", inputs, loss, [&] {
    auto node = make_node<MeanSquaredErrorNode>(difference);
    node->save_input(0, x0);
    node->save_input(1, x1);
    return node;
  });
}

}  // namespace catena::functions
