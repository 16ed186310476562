// linear and the layer Linear: one product with the bias in it, whose gradients go straight to
// their place.
#include "catena/functions/connection/linear.h"

#include <cmath>

#include "catena/functions/array/reshape.h"
#include "catena/functions/math/matmul.h"
#include "catena/functions/math/sum.h"
#include "functions/common/advice.h"
#include "functions/common/flat.h"
#include "functions/common/support.h"
#include "functions/common/weighted_layer.h"

namespace catena::functions {
namespace {

void check_linear(const FunctionCall& call) {
  const Array &x = call[0].data(), &W = call[1].data();
  const Array* b = call.optional(2) ? &call[2].data() : nullptr;
  const TypeOf in(x, "x"), w(W, "W"), bias(b, "b");
  const Checks checks(call.named(), in, w, bias);
  checks.require_float(w);
  checks.advised([&] { return layer_advice(x, W); })
      .require(in.dtype() == W.dtype(), in.ndim() >= 2, w.ndim() == 2,
               shown(flat_extent(x.shape()), "prod(x.shape[1:])") == w.shape(1));
  if (b == nullptr) return;
  checks.advised([&] { return bias_advice(*b, W); })
      .require(bias.dtype() == w.dtype(), bias.ndim() == 1, bias.shape(0) == w.shape(0));
}

// y = x W^T + b, with or without bias and relu. Saves x and W (and y for relu).
class LinearNode final : public FunctionNode {
 public:
  LinearNode(const Shape& x_shape, bool bias, bool relu)
      : x_shape_(x_shape), bias_(bias), relu_(relu) {}
  std::string label() const override { return relu_ ? "LinearReLU" : "Linear"; }

  void backward(BackwardContext& context) override {
    Variable gy = context.grad_output();
    if (!gy.defined()) return;
    if (relu_) gy = relu_grad(gy, context.output());
    if (context.create_graph()) return backward_recorded(context, gy);
    const Array& g = gy.data();
    if (context.needs(0)) give_product(context, 0, g, context.input(1).data(), x_shape_);
    if (context.needs(1)) {
      const Array x = flatten(context.input(0).data());
      give_product(context, 1, g.T(), x, {g.shape()[1], x.shape()[1]});
    }
    if (bias_ && context.needs(2)) give_sum(context, 2, g, {g.shape()[1]});
  }

 private:
  void backward_recorded(BackwardContext& context, const Variable& gy) const {
    if (context.needs(0)) context.set_grad(0, reshape(matmul(gy, context.input(1)), x_shape_));
    if (context.needs(1)) {
      const Variable x = context.input(0);
      context.set_grad(1, matmul(gy, flatten(x), true));
    }
    if (bias_ && context.needs(2)) context.set_grad(2, sum(gy, 0));
  }

  Shape x_shape_;
  bool bias_, relu_;
};

// Of x, W and, if there is one, b.
Variable apply_linear(FunctionCall& call, bool with_relu) {
  check_linear(call);
  call.require_one_device();
  const Variable &x = call[0], &W = call[1], *b = call.optional(2);
  const Array y = Array::uninitialized({x.shape()[0], W.shape()[0]}, x.dtype(), x.device());
  const Array bias = b ? b->data().contiguous() : Array();
  matmul_into(flatten(x.data()), W.data().T(), y, false, b ? &bias : nullptr,
              with_relu ? Activation::kRelu : Activation::kNone);
  call.note_work([&] { return y.size() * W.shape()[1]; });
  return call.record(y, [&] {
    auto node = make_node<LinearNode>(x.shape(), b != nullptr, with_relu);
    if (W.requires_grad()) node->save_input(0, x);
    if (x.requires_grad()) node->save_input(1, W);
    if (with_relu) node->save_output(0, y);
    return node;
  });
}

Array initial_linear_weight(int64_t in, int64_t out, const LinearOptions& options) {
  CATENA_CHECK(ValueError, in > 0 && out > 0, "Linear: expected sizes of at least 1, got ", in,
               " and ", out);
  return initial_weight("Linear", {out, in}, "(out, in)", options.initialW, options.dtype,
                        options.wscale * std::sqrt(1.0 / static_cast<double>(in)));
}

}  // namespace

Variable linear(const VariableOperand& x, const VariableOperand& W) {
  FunctionCall call("Linear", Autocast::kLow, x, W);
  return apply_linear(call, false);
}

Variable linear(const VariableOperand& x, const VariableOperand& W, const VariableOperand& b) {
  FunctionCall call("Linear", Autocast::kLow, x, W, b);
  return apply_linear(call, false);
}

Variable linear_relu(const VariableOperand& x, const VariableOperand& W, const VariableOperand& b) {
  FunctionCall call("LinearReLU", Autocast::kLow, x, W, b);
  return apply_linear(call, true);
}

Linear::Linear(int64_t in_size, int64_t out_size, const LinearOptions& options)
    : W(initial_linear_weight(in_size, out_size, options)) {
  b = initial_bias("Linear", W.data(), out_size, options.nobias, options.initial_bias,
                   options.bias);
}

Variable Linear::operator()(const VariableOperand& x) const {
  FunctionCall call("Linear", Autocast::kLow, x, weights_of("Linear", W), bias_of(b));
  return apply_linear(call, false);
}

void Linear::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  visitor(prefix + "W", W);
  if (b.defined()) visitor(prefix + "b", b);
}

}  // namespace catena::functions
