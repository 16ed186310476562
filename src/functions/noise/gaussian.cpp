// gaussian: numbers that forward and backward draw from the same bits.
#include "catena/functions/noise/gaussian.h"

#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/kernels/random.h"
#include "functions/common/advice.h"
#include "functions/common/support.h"

namespace catena::functions {

// The row gy * exp(v / 2) * eps.
Variable gaussian_noise(const VariableOperand& gy, const VariableOperand& v,
                        const VariableOperand& eps);

namespace {

// Normal numbers of that deviation, like x, the same for the same bits.
Array draw(const RandomBits& bits, double deviation, const Array& x) {
  const Array eps = Array::uninitialized(x.shape(), x.dtype(), x.device());
  RandomCall call{};
  call.kind = RandomKind::kNormal;
  call.bits = bits;
  call.low = 0;
  call.high = deviation;
  call.output = &eps;
  if (eps.size() > 0) kernels::random(eps.device(), call);
  return eps;
}

class GaussianNode final : public FunctionNode {
 public:
  explicit GaussianNode(const RandomBits& bits) : bits_(bits) {}
  std::string label() const override { return "Gaussian"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    if (context.needs(0)) context.set_grad(0, gy);
    if (!context.needs(1)) return;
    const Variable ln_var = context.input(1);
    context.set_grad(1, gaussian_noise(gy, ln_var, draw(bits_, 0.5, ln_var.data())));
  }

 private:
  RandomBits bits_;
};

std::string advice(const Array& mean, const Array& ln_var) {
  const std::string conversion = dtype_advice(mean, ln_var);
  return message("Expected are two of one floating dtype and shape.", conversion.empty() ? "" : " ",
                 conversion);
}

void check_types(const FunctionCall& call) {
  const Array &x0 = call[0].data(), &x1 = call[1].data();
  const TypeOf mean(x0, "mean"), ln_var(x1, "ln_var");
  const auto checks = Checks(call.named(), mean, ln_var).advised([&] { return advice(x0, x1); });
  checks.require(mean.kind() == 'f', ln_var.dtype() == mean.dtype(), mean.ndim() == ln_var.ndim());
  for (int i = 0; i < x0.ndim(); ++i) checks.require(mean.shape(i) == ln_var.shape(i));
}

}  // namespace

Variable gaussian(const VariableOperand& mean_operand, const VariableOperand& ln_var_operand) {
  FunctionCall call("Gaussian", Autocast::kWidest, mean_operand, ln_var_operand);
  check_types(call);
  call.require_one_device();
  const Variable &mean = call[0], &ln_var = call[1];
  const Array& v = ln_var.data();
  const RandomBits bits =
      random::default_state(v.device()).reserve(static_cast<uint64_t>(v.size()), v.device());
  const Array noise = gaussian_noise(1.0, v, draw(bits, 1, v)).data();
  return call.record(catena::add(noise, mean.data()), [&] {
    auto node = make_node<GaussianNode>(bits);
    if (ln_var.requires_grad()) node->save_input(1, ln_var);
    return node;
  });
}

}  // namespace catena::functions
