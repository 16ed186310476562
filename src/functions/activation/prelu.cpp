// prelu and the layer PReLU: leaky_relu with a slope that has the shape of some axes.
#include "catena/functions/activation/prelu.h"

#include <algorithm>

#include "catena/array/creation.h"
#include "catena/functions/activation/leaky_relu.h"
#include "catena/functions/array/reshape.h"
#include "functions/common/advice.h"
#include "functions/common/support.h"
#include "functions/common/weighted_layer.h"

namespace catena::functions {
namespace {

std::string slope_advice(const Array& x, const Array& W) {
  if (x.dtype() != W.dtype()) return layer_dtype_advice(x, W);
  return message("The slopes W, of shape ", W.shape(),
                 ", cover the axes of x that follow the first one; x has shape ", x.shape(), ".");
}

void check_prelu(const FunctionCall& call) {
  const Array &x = call[0].data(), &W = call[1].data();
  const TypeOf in(x, "x"), slope(W, "W");
  const Checks checks(call.named(), in, slope);
  checks.require_float(slope);
  const auto advised = checks.advised([&] { return slope_advice(x, W); });
  advised.require(in.dtype() == slope.dtype(), in.ndim() >= slope.ndim() + 1);
  for (int i = 0; i < W.ndim(); ++i) advised.require(in.shape(i + 1) == slope.shape(i));
}

Array initial_slopes(const Shape& shape, const PReLUOptions& options) {
  const Dtype dtype = start_dtype("PReLU", options.dtype, options.init);
  CATENA_CHECK(ValueError,
               std::all_of(shape.begin(), shape.end(), [](int64_t n) { return n >= 0; }),
               "PReLU: expected extents of at least 0, got ", shape);
  if (!options.init) return full(shape, 0.25, dtype);
  return given_start({"PReLU", "init", "shape"}, options.init, shape, dtype);
}

}  // namespace

Variable prelu(const VariableOperand& x_operand, const VariableOperand& W_operand) {
  FunctionCall call("PReLU", Autocast::kWidest, x_operand, W_operand);
  const Variable &x = call[0], &W = call[1];
  check_prelu(call);
  call.require_one_device();
  Shape aligned(size_t(x.ndim()), 1);
  std::copy(W.shape().begin(), W.shape().end(), aligned.begin() + 1);
  return leaky_relu(x, reshape(W, aligned));
}

PReLU::PReLU(const Shape& shape, const PReLUOptions& options) : W(initial_slopes(shape, options)) {}

Variable PReLU::operator()(const VariableOperand& x) const {
  CATENA_CHECK(ValueError, W.defined(), "PReLU: this layer has no slopes; it was moved from");
  return prelu(x, W.variable());
}

}  // namespace catena::functions
