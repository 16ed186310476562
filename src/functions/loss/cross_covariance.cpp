#include "catena/functions/loss/cross_covariance.h"

#include <algorithm>

#include "catena/functions/array/cast.h"
#include "catena/functions/math/matmul.h"
#include "catena/functions/math/sum.h"
#include "functions/common/advice.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

std::string cross_covariance_advice(const Array& y, const Array& z) {
  const std::string conversion = dtype_advice(y, z);
  return message("Expected are (n, j) and (n, k), of one floating dtype.",
                 conversion.empty() ? "" : " ", conversion);
}

void check_cross_covariance(const FunctionCall& call) {
  const Array &y = call[0].data(), &z = call[1].data();
  const TypeOf a(y, "y"), b(z, "z");
  Checks(call.named(), a, b)
      .advised([&] { return cross_covariance_advice(y, z); })
      .require(a.kind() == 'f', b.dtype() == a.dtype(), a.ndim() == 2, b.ndim() == 2,
               a.shape(0) == b.shape(0));
}

// The columns less their means, in float32 at least.
Variable centred(const Variable& x, double samples) {
  const Dtype wide = compute_dtype(x.dtype());
  const Variable w = wide == x.dtype() ? x : cast(x, wide);
  return w - sum(w, 0, true) * (1 / samples);
}

}  // namespace

Variable cross_covariance(const VariableOperand& y_operand, const VariableOperand& z_operand) {
  FunctionCall call("CrossCovariance", Autocast::kFloat32, y_operand, z_operand);
  check_cross_covariance(call);
  call.require_one_device();
  const Variable &y = call[0], &z = call[1];
  const auto samples = static_cast<double>(std::max<int64_t>(y.shape()[0], 1));
  const Variable products = matmul(centred(y, samples), centred(z, samples), true);
  const Variable loss = sum(square(products * (1 / samples))) * 0.5;
  return loss.dtype() == y.dtype() ? loss : cast(loss, y.dtype());
}

}  // namespace catena::functions
