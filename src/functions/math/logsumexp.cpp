// logsumexp: shares of the sum are the gradient.
#include "catena/functions/math/logsumexp.h"

#include <limits>

#include "catena/array/indexing.h"
#include "catena/array/reduction.h"
#include "catena/functions/array/reshape.h"
#include "functions/common/over_axes.h"

namespace catena::functions {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class LogSumExpNode final : public FunctionNode {
 public:
  explicit LogSumExpNode(const Shape& kept) : kept_(kept) {}
  std::string label() const override { return "LogSumExp"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    const Variable y = reshape(context.output(), kept_);
    // Parts of nothing are 0.
    const Variable shift = where(not_equal(y.data(), -kInfinity), y, 0.0);
    context.set_grad(0, exp(context.input(0) - shift) * reshape(gy, kept_));
  }

 private:
  Shape kept_;
};

// With extent 1 at the axes.
Array forward(const Array& x, const ReduceAxes& over) {
  if (x.size() == 0) return catena::log(catena::sum(x, over));
  const Array largest = amax(x, over);
  const Array shift = catena::where(isfinite(largest), largest, 0.0);
  return catena::log(catena::sum(catena::exp(x - shift), over)) + shift;
}

}  // namespace

Variable logsumexp(const VariableOperand& operand, const ReduceAxes& given, YesNo keepdims) {
  FunctionCall call("LogSumExp", Autocast::kFloat32, operand);
  const OverAxes over(call, given, keepdims);
  const Variable x = summable(call[0]);
  FunctionCall wide(call.name(), Autocast::kNone, x);
  const Array y = forward(x.data(), over.keeping()).reshape(over.result());
  const Variable result = wide.record(y, [&] {
    auto node = make_node<LogSumExpNode>(over.kept());
    node->save_input(0, x);
    node->save_output(0, y);
    return node;
  });
  return cast(result, call[0].dtype());
}

}  // namespace catena::functions
