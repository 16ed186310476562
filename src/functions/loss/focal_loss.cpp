// focal_loss, of element-wise functions.
#include "catena/functions/loss/focal_loss.h"

#include "functions/common/loss_parts.h"

namespace catena::functions {
namespace {

void check_focal_loss(const FunctionCall& call) {
  const TypeOf scores(call[0].data(), "x"), targets(call[1].data(), "t");
  const auto checks = Checks(call.named(), scores, targets).advised([] {
    return "Expected are floating scores, and targets 0 and 1 of the same shape, integers or of "
           "the dtype of x.";
  });
  checks.require_float(scores);
  if (is_float(call[1].dtype()))
    checks.require(targets.dtype() == scores.dtype());
  else if (!is_unsigned_int(call[1].dtype()))
    checks.require(targets.kind() == 'i');
  checks.require(scores.ndim() == targets.ndim());
  for (int i = 0; i < call[0].ndim(); ++i) checks.require(scores.shape(i) == targets.shape(i));
  call.require_one_device();
}

// sigmoid(-x)^gamma, through its logarithm: its slope is finite for every gamma, also where the
// sigmoid is 0.
Variable modulation(const Variable& softplus_of_x, double gamma) {
  return exp(softplus_of_x * -gamma);
}

}  // namespace

Variable focal_loss(const VariableOperand& x_operand, const VariableOperand& t_operand,
                    double alpha, double gamma, Reduction reduction) {
  FunctionCall call("FocalLoss", Autocast::kFloat32, x_operand, t_operand);
  check_focal_loss(call);
  CATENA_CHECK(ValueError, alpha >= 0 && alpha <= 1, call.label(),
               ": expected an alpha of [0, 1], got ", alpha);
  check_not_negative(call, "gamma", gamma);
  const Variable x = widened(call[0]), t = cast(call[1], x.dtype());
  const Variable log_positive = softplus(negative(x)), log_other = softplus(x);  // negated
  Variable positive = weighted(t * alpha, log_positive);
  Variable other = weighted((1.0 - t) * (1 - alpha), log_other);
  if (gamma != 0) {
    positive = positive * modulation(log_other, gamma);
    other = other * modulation(log_positive, gamma);
  }
  return reduced(positive + other, reduction, call[0].dtype());
}

}  // namespace catena::functions
