// var and std, of means and squares.
#include "catena/functions/math/moments.h"

#include <cmath>
#include <limits>

#include "catena/functions/array/reshape.h"
#include "functions/common/over_axes.h"

namespace catena::functions {
namespace {

// In float32 or wider.
Variable variance(const FunctionCall& call, const OverAxes& over, double ddof) {
  CATENA_CHECK(ValueError, std::isfinite(ddof) && ddof >= 0, call.label(),
               ": expected a ddof of at least 0, got ", ddof);
  const Variable x = summable(call[0]);
  const double count = static_cast<double>(over.count()) - ddof;
  const double factor = count > 0 ? 1 / count : std::numeric_limits<double>::quiet_NaN();
  const Variable squares = square(x - mean(x, over.keeping()));
  return reshape(sum(squares, over.keeping()) * factor, over.result());
}

// The square root, whose gradient at 0 is 0.
class DeviationNode final : public FunctionNode {
 public:
  std::string label() const override { return "Std"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    const Variable y = context.output();
    const Array moves = not_equal(y.data(), 0.0);
    context.set_grad(0, where(moves, gy * 0.5 / where(moves, y, 1.0), 0.0));
  }
};

Variable deviation(const Variable& squared) {
  FunctionCall call("Std", Autocast::kNone, squared);
  const Array y = catena::sqrt(squared.data());
  return call.record(y, [&] {
    auto node = make_node<DeviationNode>();
    node->save_output(0, y);
    return node;
  });
}

}  // namespace

Variable var(const VariableOperand& x, const ReduceAxes& axes, YesNo keepdims, double ddof) {
  FunctionCall call("Var", Autocast::kFloat32, x);
  const OverAxes over(call, axes, keepdims);
  return cast(variance(call, over, ddof), call[0].dtype());
}

Variable std(const VariableOperand& x, const ReduceAxes& axes, YesNo keepdims, double ddof) {
  FunctionCall call("Std", Autocast::kFloat32, x);
  const OverAxes over(call, axes, keepdims);
  return cast(deviation(variance(call, over, ddof)), call[0].dtype());
}

}  // namespace catena::functions
