// Losses of variational auto-encoders, as compositions.
#include "catena/functions/loss/vae.h"

#include <cmath>
#include <numbers>

#include "catena/functions/math/sum.h"
#include "functions/common/advice.h"
#include "functions/common/loss_parts.h"

namespace catena::functions {
namespace {

std::string gaussian_advice(const Array& first, const Array& other) {
  const std::string conversion = dtype_advice(first, other);
  return message("Expected are arrays of one floating dtype and shape.",
                 conversion.empty() ? "" : " ", conversion);
}

// Operand i has the type of the first one.
void check_like_first(const FunctionCall& call, const char* first, const char* name, size_t i) {
  const Array &x0 = call[0].data(), &x1 = call[i].data();
  const TypeOf a(x0, first), b(x1, name);
  const auto checks = Checks(call.named(), a, b).advised([&] { return gaussian_advice(x0, x1); });
  checks.require(a.kind() == 'f', b.dtype() == a.dtype(), b.ndim() == a.ndim());
  for (int k = 0; k < x0.ndim(); ++k) checks.require(b.shape(k) == a.shape(k));
}

}  // namespace

Variable gaussian_kl_divergence(const VariableOperand& mean_operand,
                                const VariableOperand& ln_var_operand, Reduction reduction) {
  FunctionCall call("GaussianKLDivergence", Autocast::kFloat32, mean_operand, ln_var_operand);
  check_like_first(call, "mean", "ln_var", 1);
  call.require_one_device();
  const Variable mu = widened(call[0]), v = widened(call[1]);
  // exp(v) - 1 - v, which keeps its digits where v is small.
  return reduced((square(mu) + (expm1(v) - v)) * 0.5, reduction, call[0].dtype());
}

Variable bernoulli_nll(const VariableOperand& x_operand, const VariableOperand& y_operand,
                       Reduction reduction) {
  FunctionCall call("BernoulliNLL", Autocast::kFloat32, x_operand, y_operand);
  check_like_first(call, "x", "y", 1);
  call.require_one_device();
  const Variable x = widened(call[0]), y = widened(call[1]);
  // As both terms apart, which keep their digits where softplus(y) - x y loses them.
  const Variable losses = weighted(x, softplus(negative(y))) + weighted(1.0 - x, softplus(y));
  return reduced(losses, reduction, call[0].dtype());
}

Variable gaussian_nll(const VariableOperand& x_operand, const VariableOperand& mean_operand,
                      const VariableOperand& ln_var_operand, Reduction reduction) {
  FunctionCall call("GaussianNLL", Autocast::kFloat32, x_operand, mean_operand, ln_var_operand);
  check_like_first(call, "x", "mean", 1);
  check_like_first(call, "x", "ln_var", 2);
  call.require_one_device();
  const Variable v = widened(call[2]), d = widened(call[0]) - widened(call[1]);
  const Variable losses = (v + square(d) * exp(negative(v)) + std::log(2 * std::numbers::pi)) * 0.5;
  return reduced(losses, reduction, call[0].dtype());
}

}  // namespace catena::functions
