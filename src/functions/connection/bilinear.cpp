// bilinear and the layer Bilinear, composed of products.
#include "catena/functions/connection/bilinear.h"

#include <cmath>

#include "catena/array/creation.h"
#include "catena/array/random.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/math.h"
#include "functions/common/advice.h"
#include "functions/common/checks.h"
#include "functions/common/flat.h"
#include "functions/common/support.h"
#include "functions/common/weighted_layer.h"

namespace catena::functions {
namespace {

constexpr const char* kBilinear = "Bilinear";

void check_inputs(const FunctionCall& call) {
  const Array &e1 = call[0].data(), &e2 = call[1].data();
  const Variable& W = call[2];
  const TypeOf left(e1, "e1"), right(e2, "e2"), weight(W.data(), "W");
  const Checks checks(call.named(), left, right, weight);
  checks.require_float(weight);
  checks.advised([&] { return layer_dtype_advice(e1, W.data()); })
      .require(left.dtype() == weight.dtype());
  checks.advised([&] { return layer_dtype_advice(e2, W.data()); })
      .require(right.dtype() == weight.dtype());
  checks.require(left.ndim() >= 2, right.ndim() >= 2, weight.ndim() == 3,
                 left.shape(0) == right.shape(0),
                 shown(flat_extent(e1.shape()), "prod(e1.shape[1:])") == weight.shape(0),
                 shown(flat_extent(e2.shape()), "prod(e2.shape[1:])") == weight.shape(1));
}

void check_bias(const FunctionCall& call) {
  const TypeOf weight(call[2].data(), "W"), left(call[3].data(), "V1"), right(call[4].data(), "V2"),
      bias(call[5].data(), "b");
  const Checks checks(call.named(), weight, left, right, bias);
  checks.require(left.dtype() == weight.dtype(), right.dtype() == weight.dtype(),
                 bias.dtype() == weight.dtype(), left.ndim() == 2, right.ndim() == 2,
                 bias.ndim() == 1, left.shape(0) == weight.shape(0),
                 left.shape(1) == weight.shape(2), right.shape(0) == weight.shape(1),
                 right.shape(1) == weight.shape(2), bias.shape(0) == weight.shape(2));
}

// Of matrices e1 and e2.
Variable product_of(const Variable& e1, const Variable& e2, const Variable& W) {
  const int64_t n = e1.shape()[0], J = e1.shape()[1], K = e2.shape()[1], L = W.shape()[2];
  const Variable pairs = reshape(e1, {n, J, 1}) * reshape(e2, {n, 1, K});
  return matmul(reshape(pairs, {n, J * K}), reshape(W, {J * K, L}));
}

double deviation_of(int64_t size) { return std::sqrt(1 / static_cast<double>(size)); }

Array initial_product_weight(int64_t left, int64_t right, int64_t out,
                             const BilinearOptions& options) {
  CATENA_CHECK(ValueError, left > 0 && right > 0 && out > 0,
               "Bilinear: expected sizes of at least 1, got ", left, ", ", right, " and ", out);
  const BilinearBias& bias = options.initial_bias;
  CATENA_CHECK(ValueError, !options.nobias || !(bias.V1 || bias.V2 || bias.b),
               "Bilinear: nobias and initial_bias contradict each other; leave out one of them");
  return initial_weight(kBilinear, {left, right, out}, "(left, right, out)", options.initialW,
                        options.dtype, deviation_of(left * right));
}

// V1, V2 or b, of W's dtype and device.
Array initial_linear(const Array& W, const char* name, const char* axes, const InitialValue& given,
                     const Shape& shape, double deviation) {
  const DeviceScope scope(W.device());
  if (given) return given_start({kBilinear, name, axes}, given, shape, W.dtype());
  return deviation > 0 ? random::normal(shape, 0, deviation, W.dtype()) : zeros(shape, W.dtype());
}

}  // namespace

Variable bilinear(const VariableOperand& left, const VariableOperand& right,
                  const VariableOperand& weight) {
  FunctionCall call(kBilinear, Autocast::kLow, left, right, weight);
  check_inputs(call);
  return product_of(flatten(call[0]), flatten(call[1]), call[2]);
}

Variable bilinear(const VariableOperand& left, const VariableOperand& right,
                  const VariableOperand& weight, const VariableOperand& V1,
                  const VariableOperand& V2, const VariableOperand& bias) {
  FunctionCall call(kBilinear, Autocast::kLow, left, right, weight, V1, V2, bias);
  check_inputs(call);
  check_bias(call);
  const Variable a = flatten(call[0]), c = flatten(call[1]);
  return product_of(a, c, call[2]) + matmul(a, call[3]) + matmul(c, call[4]) + call[5];
}

Bilinear::Bilinear(int64_t left_size, int64_t right_size, int64_t out_size,
                   const BilinearOptions& options)
    : W(initial_product_weight(left_size, right_size, out_size, options)) {
  if (options.nobias) return;
  const auto start = [&](const char* name, const char* axes, const InitialValue& given,
                         const Shape& shape, double deviation) {
    return OwnedParameter(initial_linear(W.data(), name, axes, given, shape, deviation));
  };
  const BilinearBias& given = options.initial_bias;
  V1 = start("initial_bias.V1", "(left, out)", given.V1, {left_size, out_size},
             deviation_of(left_size));
  V2 = start("initial_bias.V2", "(right, out)", given.V2, {right_size, out_size},
             deviation_of(right_size));
  b = start("initial_bias.b", "(out)", given.b, {out_size}, 0);
}

Variable Bilinear::operator()(const VariableOperand& e1, const VariableOperand& e2) const {
  CATENA_CHECK(ValueError, W.defined(), "Bilinear: this layer has no weights; it was moved from");
  return b.defined() ? bilinear(e1, e2, W, V1, V2, b) : bilinear(e1, e2, W);
}

void Bilinear::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  visitor(prefix + "W", W);
  if (!b.defined()) return;
  visitor(prefix + "V1", V1);
  visitor(prefix + "V2", V2);
  visitor(prefix + "b", b);
}

}  // namespace catena::functions
