// feed_forward: two products with an activation between them, in one node.
#include "catena/functions/connection/feed_forward.h"

#include "catena/autograd/kept_results.h"
#include "catena/functions/activation/elementwise.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/math/elementwise.h"
#include "catena/functions/math/matmul.h"
#include "catena/functions/math/sum.h"
#include "functions/common/activation_grad.h"
#include "functions/common/advice.h"
#include "functions/common/gradient_target.h"
#include "functions/common/support.h"

namespace catena::functions {

// Rows of the table.
Variable gelu_grad(const VariableOperand& gy, const VariableOperand& x);
Variable gelu_tanh_grad(const VariableOperand& gy, const VariableOperand& x);

namespace {

constexpr const char* kFeedForward = "FeedForward";

// An activation, and gy times its derivative, for gradients of higher order. What the derivative
// reads is what goes into it, of relu what comes out.
struct ActivationKind {
  LinearActivation function;
  Variable (*value)(const VariableOperand& x);
  Variable (*slope)(const VariableOperand& gy, const VariableOperand& kept);
};
constexpr ActivationKind kRelu{LinearActivation::kRelu, &relu, &relu_grad},
    kGelu{LinearActivation::kGelu, &gelu, &gelu_grad},
    kGeluTanh{LinearActivation::kGeluTanh, &gelu_tanh, &gelu_tanh_grad};

const ActivationKind& kind_of(TransformerActivation activation) {
  switch (activation) {
    case TransformerActivation::kRelu: return kRelu;
    case TransformerActivation::kGelu: return kGelu;
    case TransformerActivation::kGeluTanh: return kGeluTanh;
  }
  fail<ValueError>(kFeedForward, ": activation ", int(activation), " is none of them");
}

// Places of the operands; those of biases are below 0 where there are none.
struct OperandPlaces {
  explicit OperandPlaces(bool biases)
      : b1(biases ? 2 : -1), W2(biases ? 3 : 2), b2(biases ? 4 : -1) {}
  int x = 0, W1 = 1, b1, W2, b2;
};

// Of the matrices (rows, in), (rows, inner) and (rows, out).
struct Sizes {
  int64_t rows, in, inner, out;
};

// Of the forward pass, of shape (rows, inner); undefined where backward does not read them.
struct InnerNumbers {
  Array before;  // what goes into the activation
  Array after;   // what comes out
};

class FeedForwardNode final : public FunctionNode {
 public:
  FeedForwardNode(const ActivationKind& kind, const Sizes& sizes, const OperandPlaces& at,
                  const InnerNumbers& kept)
      : kind_(kind), sizes_(sizes), at_(at), kept_(kept) {}
  std::string label() const override { return kFeedForward; }

  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    if (context.create_graph()) return backward_recorded(context, gy);
    const auto& [rows, in, inner, out] = sizes_;
    const Array g = gy.data().reshape({rows, out});
    if (context.needs(at_.W2)) {
      check_kept(kept_.after);
      give_product(context, at_.W2, g.T(), kept_.after, {out, inner});
    }
    if (wants(context, at_.b2)) give_sum(context, at_.b2, g, {out});
    if (!wants_inner(context)) return;
    const Array& kept = kind_.function == LinearActivation::kRelu ? kept_.after : kept_.before;
    check_kept(kept);
    const Array gz = Array::uninitialized({rows, inner}, g.dtype(), g.device());
    matmul_into(g, context.input(at_.W2).data(), gz);
    give_activation_grad(context, kind_.function, gz, kept, gz, at_.b1);
    if (context.needs(at_.W1)) {
      const Array x = context.input(at_.x).data().reshape({rows, in});
      give_product(context, at_.W1, gz.T(), x, {inner, in});
    }
    if (context.needs(at_.x))
      give_product(context, at_.x, gz, context.input(at_.W1).data(), inputs()[0]->shape);
  }

 private:
  static void check_kept(const Array& a) {
    CATENA_CHECK(GradientError, a.defined(), kFeedForward,
                 ": a gradient is wanted that was not wanted in the forward pass; unfreeze "
                 "parameters before");
  }
  // Whether a gradient in front of the activation is wanted.
  bool wants_inner(const BackwardContext& context) const {
    return context.needs(at_.x) || context.needs(at_.W1) || wants(context, at_.b1);
  }
  // The same on variables.
  void backward_recorded(BackwardContext& context, const Variable& gy) const {
    const auto& [rows, in, inner, out] = sizes_;
    const Variable g = reshape(gy, {rows, out}), x = reshape(context.input(at_.x), {rows, in}),
                   W1 = context.input(at_.W1);
    const Variable z = at_.b1 >= 0 ? linear(x, W1, context.input(at_.b1)) : linear(x, W1),
                   h = kind_.value(z);
    if (context.needs(at_.W2)) context.set_grad(at_.W2, matmul(g, h, true));
    if (wants(context, at_.b2)) context.set_grad(at_.b2, sum(g, 0));
    if (!wants_inner(context)) return;
    const Variable gz = kind_.slope(matmul(g, context.input(at_.W2)),
                                    kind_.function == LinearActivation::kRelu ? h : z);
    if (wants(context, at_.b1)) context.set_grad(at_.b1, sum(gz, 0));
    if (context.needs(at_.W1)) context.set_grad(at_.W1, matmul(gz, x, true));
    if (context.needs(at_.x)) context.set_grad(at_.x, reshape(matmul(gz, W1), inputs()[0]->shape));
  }

  const ActivationKind& kind_;
  Sizes sizes_;
  OperandPlaces at_;
  InnerNumbers kept_;
};

std::string weights_advice(const Array& W1, const Array& W2) {
  if (W2.dtype() != W1.dtype()) return "Expected are weights W1 and W2 of one dtype.";
  return message("The second weights W2 are expected as (out, ", W1.shape()[0],
                 "), a matrix for the ", W1.shape()[0], " numbers that W1 gives; W2 has shape ",
                 W2.shape(), ".");
}

void check_operands(const FunctionCall& call, const OperandPlaces& at) {
  const auto data = [&](int place) { return place < 0 ? nullptr : &call[size_t(place)].data(); };
  const Array &x = *data(at.x), &W1 = *data(at.W1), &W2 = *data(at.W2);
  const TypeOf in(x, "x"), w1(W1, "W1"), w2(W2, "W2"), b1(data(at.b1), "b1"), b2(data(at.b2), "b2");
  const Checks all(call.named(), in, w1, b1, w2, b2);
  all.require_float(w1);
  all.advised([&] { return layer_advice(x, W1, false); })
      .require(in.dtype() == w1.dtype(), in.ndim() >= 1, w1.ndim() == 2,
               in.shape(x.ndim() - 1) == w1.shape(1));
  all.advised([&] { return weights_advice(W1, W2); })
      .require(w2.dtype() == w1.dtype(), w2.ndim() == 2, w2.shape(1) == w1.shape(0));
  const auto check_bias = [&](const TypeOf& b, const TypeOf& w) {
    if (b.array == nullptr) return;
    all.advised([&] { return bias_advice(*b.array, *w.array); })
        .require(b.dtype() == w.dtype(), b.ndim() == 1, b.shape(0) == w.shape(0));
  };
  check_bias(b1, w1);
  check_bias(b2, w2);
}

// (rows, inner): f(x W1^T + b1), and what goes into f where `keep_before`.
InnerNumbers make_inner_numbers(const ActivationKind& kind, const Sizes& sizes, const Array& x,
                                const Array& W1, const Array* b1, bool keep_before) {
  const auto uninitialized = [&] {
    return Array::uninitialized({sizes.rows, sizes.inner}, x.dtype(), x.device());
  };
  InnerNumbers kept{keep_before ? uninitialized() : Array(), uninitialized()};
  if (kept.after.size() == 0) return kept;
  const Array in = matrix_operand(x), W = matrix_operand(W1),
              bias = b1 ? b1->contiguous() : Array();
  kernels::linear_activation(x.device(), {.function = kind.function,
                                          .x = &in,
                                          .W = &W,
                                          .bias = b1 ? &bias : nullptr,
                                          .before = keep_before ? &kept.before : nullptr,
                                          .y = &kept.after});
  return kept;
}

Variable apply(FunctionCall& call, const FeedForwardOptions& options) {
  const OperandPlaces at(call.size() == 5);
  const ActivationKind& kind = kind_of(options.activation);
  check_operands(call, at);
  call.require_one_device();
  const auto data = [&](int place) { return place < 0 ? nullptr : &call[size_t(place)].data(); };
  const auto recorded = [&, is_recorded = call.is_recorded()](int place) {
    return is_recorded && place >= 0 && call[size_t(place)].requires_grad();
  };
  const Array &x = *data(at.x), &W1 = *data(at.W1), &W2 = *data(at.W2);
  Shape shape = x.shape();
  shape.back() = 1;
  const Sizes sizes{element_count(shape), W1.shape()[1], W1.shape()[0], W2.shape()[0]};
  shape.back() = sizes.out;
  const bool is_relu = kind.function == LinearActivation::kRelu,
             inner_wanted = recorded(at.x) || recorded(at.W1) || recorded(at.b1),
             keep_before = !is_relu && (inner_wanted || KeptResultsScope::wants(Keep::kProducts));
  InnerNumbers kept;
  Array& of_first = is_relu ? kept.after : kept.before;  // what the first product leaves
  const std::array<Array, 2> made = make_once(call, Keep::kProducts, [&] {
    kept = make_inner_numbers(kind, sizes, x.reshape({sizes.rows, sizes.in}), W1, data(at.b1),
                              keep_before);
    const Array product = Array::uninitialized(shape, x.dtype(), x.device());
    const Array b2 = at.b2 < 0 ? Array() : data(at.b2)->contiguous();
    matmul_into(kept.after, W2.T(), product.reshape({sizes.rows, sizes.out}), false,
                at.b2 < 0 ? nullptr : &b2);
    call.note_work([&] { return sizes.rows * sizes.inner * (sizes.in + sizes.out); });
    return std::array{of_first, product};
  });
  of_first = made[0];
  return call.record(made[1], [&] {
    if (!recorded(at.W2) && !(inner_wanted && is_relu))
      kept.after = Array();
    else if (!kept.after.defined())
      kept.after = kind.value(Variable::constant(kept.before)).data();
    if (!inner_wanted) kept.before = Array();
    auto node = make_node<FeedForwardNode>(kind, sizes, at, kept);
    for (const int place : {at.x, at.W1, at.b1, at.W2})
      if (place >= 0) node->save_input(place, call[size_t(place)]);
    return node;
  });
}

}  // namespace

Variable feed_forward(const VariableOperand& x, const VariableOperand& W1,
                      const VariableOperand& b1, const VariableOperand& W2,
                      const VariableOperand& b2, const FeedForwardOptions& options) {
  FunctionCall call(kFeedForward, Autocast::kLow, x, W1, b1, W2, b2);
  return apply(call, options);
}

Variable feed_forward(const VariableOperand& x, const VariableOperand& W1,
                      const VariableOperand& W2, const FeedForwardOptions& options) {
  FunctionCall call(kFeedForward, Autocast::kLow, x, W1, W2);
  return apply(call, options);
}

}  // namespace catena::functions
