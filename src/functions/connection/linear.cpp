// linear and the layer Linear: one product with the bias in it, whose gradients go straight to
// their place.
#include "catena/functions/connection/linear.h"

#include <cmath>

#include "catena/autograd/kept_results.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/math/matmul.h"
#include "catena/functions/math/sum.h"
#include "functions/common/activation_grad.h"
#include "functions/common/advice.h"
#include "functions/common/flat.h"
#include "functions/common/support.h"
#include "functions/common/weighted_layer.h"

namespace catena::functions {
namespace {

// What a layer does with its input and its result.
struct LinearForm {
  bool flatten = false, relu = false;
};

void check_linear(const FunctionCall& call, bool flatten) {
  const Array &x = call[0].data(), &W = call[1].data();
  const Array* b = call.optional(2) ? &call[2].data() : nullptr;
  const TypeOf in(x, "x"), w(W, "W"), bias(b, "b");
  const Checks all(call.named(), in, w, bias);
  all.require_float(w);
  const auto checks = all.advised([&] { return layer_advice(x, W, flatten); });
  checks.require(in.dtype() == W.dtype(), in.ndim() >= (flatten ? 2 : 1), w.ndim() == 2);
  if (flatten)
    checks.require(shown(flat_extent(x.shape()), "prod(x.shape[1:])") == w.shape(1));
  else
    checks.require(in.shape(x.ndim() - 1) == w.shape(1));
  if (b == nullptr) return;
  all.advised([&] { return bias_advice(*b, W); })
      .require(bias.dtype() == w.dtype(), bias.ndim() == 1, bias.shape(0) == w.shape(0));
}

// An operand or its gradient as the (rows, columns) of the product.
Array as_matrix(const Array& a, int64_t rows, int64_t columns) {
  return a.ndim() == 2 ? a : a.reshape({rows, columns});
}
Variable as_matrix(const Variable& a, int64_t rows, int64_t columns) {
  return a.ndim() == 2 ? a : reshape(a, {rows, columns});
}

// y = x W^T + b, with or without bias and relu. Saves x and W (and y for relu).
class LinearNode final : public FunctionNode {
 public:
  // The product is that of (rows, in) and (in, out).
  LinearNode(int64_t rows, int64_t in, int64_t out, bool bias, bool relu)
      : rows_(rows), in_(in), out_(out), bias_(bias), relu_(relu) {}
  std::string label() const override { return relu_ ? "LinearReLU" : "Linear"; }

  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    if (context.create_graph())
      return backward_recorded(context, relu_ ? relu_grad(gy, context.output()) : gy);
    const Array g = relu_ ? through_relu(context, gy.data()) : as_matrix(gy.data(), rows_, out_);
    if (context.needs(0)) give_product(context, 0, g, context.input(1).data(), inputs()[0]->shape);
    if (context.needs(1)) {
      const Array x = as_matrix(context.input(0).data(), rows_, in_);
      give_product(context, 1, g.T(), x, {out_, in_});
    }
    if (bias_ && !relu_ && context.needs(2)) give_sum(context, 2, g, {out_});
  }

 private:
  // The gradient in front of relu; gives the bias its own.
  Array through_relu(BackwardContext& context, const Array& gy) const {
    const Array g = as_matrix(gy.contiguous(), rows_, out_),
                y = as_matrix(context.output().data(), rows_, out_),
                gx = Array::uninitialized({rows_, out_}, g.dtype(), g.device());
    give_activation_grad(context, LinearActivation::kRelu, g, y, gx, bias_ ? 2 : -1);
    return gx;
  }
  void backward_recorded(BackwardContext& context, const Variable& gy) const {
    const Variable g = as_matrix(gy, rows_, out_);
    if (context.needs(0))
      context.set_grad(0, reshape(matmul(g, context.input(1)), inputs()[0]->shape));
    if (context.needs(1)) {
      const Variable x = context.input(0);
      context.set_grad(1, matmul(g, as_matrix(x, rows_, in_), true));
    }
    if (bias_ && context.needs(2)) context.set_grad(2, sum(g, 0));
  }

  int64_t rows_, in_, out_;
  bool bias_, relu_;
};

Shape result_shape(const Shape& x, int64_t out, bool flatten) {
  if (flatten) return {x[0], out};
  Shape y = x;
  y.back() = out;
  return y;
}

// Of x, W and, if there is one, b.
Variable apply_linear(FunctionCall& call, LinearForm form) {
  check_linear(call, form.flatten);
  call.require_one_device();
  const Variable &x = call[0], &W = call[1], *b = call.optional(2);
  const int64_t out = W.shape()[0], in = W.shape()[1];
  const Shape shape = result_shape(x.shape(), out, form.flatten);
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  const Array y = make_once(call, Keep::kProducts, [&] {
    const Array product = Array::uninitialized(shape, x.dtype(), x.device());
    const Array bias = b ? b->data().contiguous() : Array();
    matmul_into(as_matrix(x.data(), rows, in), W.data().T(), as_matrix(product, rows, out), false,
                b ? &bias : nullptr, form.relu ? Activation::kRelu : Activation::kNone);
    call.note_work([&] { return product.size() * in; });
    return product;
  });
  return call.record(y, [&] {
    auto node = make_node<LinearNode>(rows, in, out, b != nullptr, form.relu);
    if (W.requires_grad()) node->save_input(0, x);
    if (x.requires_grad()) node->save_input(1, W);
    if (form.relu) node->save_output(0, y);
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
  return apply_linear(call, {});
}

Variable linear(const VariableOperand& x, const VariableOperand& W, const VariableOperand& b) {
  FunctionCall call("Linear", Autocast::kLow, x, W, b);
  return apply_linear(call, {});
}

Variable linear_relu(const VariableOperand& x, const VariableOperand& W, const VariableOperand& b) {
  FunctionCall call("LinearReLU", Autocast::kLow, x, W, b);
  return apply_linear(call, {.relu = true});
}

Linear::Linear(int64_t in_size, int64_t out_size, const LinearOptions& options)
    : W(initial_linear_weight(in_size, out_size, options)), flatten_(options.flatten) {
  b = initial_bias("Linear", W.data(), out_size, options.nobias, options.initial_bias,
                   options.bias);
}

Variable Linear::operator()(const VariableOperand& x) const {
  FunctionCall call("Linear", Autocast::kLow, x, weights_of("Linear", W), bias_of(b));
  return apply_linear(call, {.flatten = flatten_});
}

Variable Linear::relu(const VariableOperand& x) const {
  FunctionCall call("LinearReLU", Autocast::kLow, x, weights_of("Linear", W), bias_of(b));
  return apply_linear(call, {.flatten = flatten_, .relu = true});
}

void Linear::visit_parameters(const Visitor& visitor, const std::string& prefix) {
  visitor(prefix + "W", W);
  if (b.defined()) visitor(prefix + "b", b);
}

}  // namespace catena::functions
