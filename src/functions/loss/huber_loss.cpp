// huber_loss and smooth_l1: a node for the elements, then a reduction.
#include "catena/functions/loss/huber_loss.h"

#include <cmath>

#include "catena/array/math.h"
#include "catena/functions/loss/mean_absolute_error.h"
#include "functions/common/loss_parts.h"

namespace catena::functions {
namespace {

// The derivative of c (d - c / 2), c = clip(d, -delta, delta), is c.
class HuberNode final : public FunctionNode {
 public:
  explicit HuberNode(double delta) : delta_(delta) {}
  std::string label() const override { return "Huber"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (gy.defined()) context.set_grad(0, gy * clip(context.input(0), -delta_, delta_));
  }

 private:
  double delta_;
};

Variable huber(const Variable& difference, double delta) {
  FunctionCall call("Huber", Autocast::kNone, difference);
  const Array d = call[0].data(), c = catena::clip(d, -delta, delta);
  return call.record(c * (d - c * 0.5), [&] {
    auto node = make_node<HuberNode>(delta);
    node->save_input(0, call[0]);
    return node;
  });
}

}  // namespace

Variable huber_loss(const VariableOperand& x, const VariableOperand& t, double delta,
                    Reduction reduction) {
  FunctionCall call("HuberLoss", Autocast::kFloat32, x, t);
  check_pair(call, "x", "t");
  CATENA_CHECK(ValueError, std::isfinite(delta) && delta > 0, call.label(),
               ": expected a finite delta above 0, got ", delta);
  const Variable losses = huber(widened(call[0]) - widened(call[1]), delta);
  return reduced(losses, reduction, call[0].dtype());
}

Variable smooth_l1(const VariableOperand& x, const VariableOperand& t, double beta,
                   Reduction reduction) {
  if (beta == 0) return mean_absolute_error(x, t, reduction);
  FunctionCall call("SmoothL1", Autocast::kFloat32, x, t);
  check_pair(call, "x", "t");
  check_not_negative(call, "beta", beta);
  const Variable losses = huber(widened(call[0]) - widened(call[1]), beta) * (1 / beta);
  return reduced(losses, reduction, call[0].dtype());
}

}  // namespace catena::functions
