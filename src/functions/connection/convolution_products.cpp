#include "functions/connection/convolution_products.h"

#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/autograd/kept_results.h"
#include "catena/autograd/linear_map.h"
#include "catena/functions/math.h"
#include "catena/kernels/convolution.h"
#include "catena/kernels/reduce.h"
#include "functions/common/support.h"

namespace catena::functions {

// The three products of a convolution on arrays ------------------------------------------------

Array convolved(const ConvolutionPlan& p, const Array& x, const Array& W, const Array* b) {
  const Array y = p.layout.uninitialized(p.y_shape, x);
  if (y.size() == 0) return y;
  if (p.W_shape[1] == 0) {
    y.fill(0);
    return b ? y + b->reshape({1, b->size(), 1, 1}) : y;
  }
  const Array in = p.layout.laid_out(x), weight = p.filters.laid_out(W);
  const Array bias = b ? b->contiguous() : Array();
  kernels::convolution(x.device(), {&in, &weight, b ? &bias : nullptr, &y, p.window, p.groups});
  return y;
}

void write_grad_x(const ConvolutionPlan& p, const Array& gy, const Array& W, const Array& gx,
                  bool accumulate) {
  if (gx.size() == 0) return;
  if (gy.size() == 0) {
    if (!accumulate) gx.fill(0);
    return;
  }
  const Array g = p.layout.laid_out(gy), weight = p.filters.laid_out(W);
  kernels::convolution_grad_x(gy.device(), {&g, &weight, &gx, p.window, p.groups, accumulate});
}

void write_grad_w(const ConvolutionPlan& p, const Array& x, const Array& gy, const Array& gW,
                  bool accumulate) {
  if (gW.size() == 0) return;
  if (gy.size() == 0) {
    if (!accumulate) gW.fill(0);
    return;
  }
  const Array in = p.layout.laid_out(x), g = p.layout.laid_out(gy);
  kernels::convolution_grad_w(gy.device(), {&in, &g, &gW, p.window, p.groups, accumulate});
}

// First-order gradients to where they go --------------------------------------------------------

namespace {

void give_grad_w(BackwardContext& context, const ConvolutionPlan& plan, const Array& x,
                 const Array& gy) {
  const auto to = context.destination(1);
  if (to && to.array->dtype() == gy.dtype() && plan.filters.fits(*to.array)) {
    write_grad_w(plan, x, gy, *to.array, to.accumulate);
    return context.written(1);
  }
  const Array gW = plan.filters.uninitialized(plan.W_shape, gy);
  write_grad_w(plan, x, gy, gW, false);
  context.set_grad(1, Variable::constant(gW));
}

void give_grad_b(BackwardContext& context, const Array& g) {
  const auto to = context.wide_destination(2);
  if (!to || !sums_come_in(g.dtype(), to.array->dtype()) || !to.array->is_contiguous() ||
      g.size() == 0)
    return context.set_grad(2, Variable::constant(catena::sum(g, {0, 2, 3})));
  const Array target = to.array->reshape({1, g.shape()[1], 1, 1});
  constexpr uint32_t kAxes = 1u << 0 | 1u << 2 | 1u << 3;
  kernels::reduce(g.device(), {ReduceOp::kSum, &g, &target, kAxes, 1.0, to.accumulate});
  context.written(2);
}

}  // namespace

// The same on variables: each is the gradient of the others, so that all can be differentiated any
// number of times ---------------------------------------------------------------------------------

Variable convolve(const ConvolutionPlan& plan, const Variable& x, const Variable& W) {
  FunctionCall call("Convolution2D", Autocast::kNone, x, W);
  return convolve(plan, call);
}

namespace {

// Of a transpose, x and y change their places.
template <bool kTransposed>
class ConvolutionNode final : public FunctionNode {
 public:
  ConvolutionNode(const ConvolutionPlan& plan, bool bias) : plan_(plan), bias_(bias) {}
  std::string label() const override { return kTransposed ? "Deconvolution2D" : "Convolution2D"; }

  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    if (context.create_graph()) return backward_recorded(context, gy);
    const Array g = plan_.layout.laid_out(gy.data());
    if (context.needs(0)) give_x(context, g);
    if (context.needs(1)) {
      const Array x = context.input(0).data();
      give_grad_w(context, plan_, kTransposed ? g : x, kTransposed ? x : g);
    }
    if (bias_ && context.needs(2)) give_grad_b(context, g);
  }

 private:
  void backward_recorded(BackwardContext& context, const Variable& gy) const {
    if (context.needs(0))
      context.set_grad(0, kTransposed ? convolve(plan_, gy, context.input(1))
                                      : grad_x_of(plan_, gy, context.input(1)));
    if (context.needs(1))
      context.set_grad(1, kTransposed ? grad_w_of(plan_, gy, context.input(0))
                                      : grad_w_of(plan_, context.input(0), gy));
    if (bias_ && context.needs(2)) context.set_grad(2, sum(gy, {0, 2, 3}));
  }
  void give_x(BackwardContext& context, const Array& g) const {
    if constexpr (kTransposed)
      return context.set_grad(
          0, Variable::constant(convolved(plan_, g, context.input(1).data(), nullptr)));
    const auto to = context.destination(0);
    if (to && to.array->dtype() == g.dtype() && plan_.layout.fits(*to.array)) {
      write_grad_x(plan_, g, context.input(1).data(), *to.array, to.accumulate);
      return context.written(0);
    }
    const Array gx = plan_.layout.uninitialized(plan_.x_shape, g);
    write_grad_x(plan_, g, context.input(1).data(), gx, false);
    context.set_grad(0, Variable::constant(gx));
  }

  ConvolutionPlan plan_;
  bool bias_;
};

// gx = the gradient of x, of gy and W.
class ConvolutionGradXNode final : public FunctionNode {
 public:
  explicit ConvolutionGradXNode(const ConvolutionPlan& plan) : plan_(plan) {}
  std::string label() const override { return "Convolution2DGradX"; }

  void backward(BackwardContext& context) override {
    const Variable g = context.grad_output();
    if (!g.defined()) return;
    if (context.needs(0)) context.set_grad(0, convolve(plan_, g, context.input(1)));
    if (context.needs(1)) context.set_grad(1, grad_w_of(plan_, g, context.input(0)));
  }

 private:
  ConvolutionPlan plan_;
};

// gW = the gradient of W, of x and gy.
class ConvolutionGradWNode final : public FunctionNode {
 public:
  explicit ConvolutionGradWNode(const ConvolutionPlan& plan) : plan_(plan) {}
  std::string label() const override { return "Convolution2DGradW"; }

  void backward(BackwardContext& context) override {
    const Variable g = context.grad_output();
    if (!g.defined()) return;
    if (context.needs(0)) context.set_grad(0, grad_x_of(plan_, context.input(1), g));
    if (context.needs(1)) context.set_grad(1, convolve(plan_, context.input(0), g));
  }

 private:
  ConvolutionPlan plan_;
};

// Records a product of two variables that its gradients need both of.
template <class Node>
Variable record_product(FunctionCall& call, const ConvolutionPlan& plan, const Array& result) {
  return call.record(result, [&] {
    auto node = make_node<Node>(plan);
    if (call[1].requires_grad()) node->save_input(0, call[0]);
    if (call[0].requires_grad()) node->save_input(1, call[1]);
    return node;
  });
}

}  // namespace

Variable grad_x_of(const ConvolutionPlan& plan, const Variable& gy, const Variable& W) {
  FunctionCall call("Convolution2DGradX", Autocast::kNone, gy, W);
  const Array gx = plan.layout.uninitialized(plan.x_shape, gy.data());
  write_grad_x(plan, gy.data(), W.data(), gx, false);
  return record_product<ConvolutionGradXNode>(call, plan, gx);
}

Variable grad_w_of(const ConvolutionPlan& plan, const Variable& x, const Variable& gy) {
  FunctionCall call("Convolution2DGradW", Autocast::kNone, x, gy);
  const Array gW = plan.filters.uninitialized(plan.W_shape, x.data());
  write_grad_w(plan, x.data(), gy.data(), gW, false);
  return record_product<ConvolutionGradWNode>(call, plan, gW);
}

Variable convolve(const ConvolutionPlan& plan, FunctionCall& call) {
  const Variable &x = call[0], &W = call[1], *b = call.optional(2);
  const Array y = make_once(call, Keep::kProducts, [&] {
    const Array product = convolved(plan, x.data(), W.data(), b ? &b->data() : nullptr);
    call.note_work([&] { return product.size() * W.shape()[1] * W.shape()[2] * W.shape()[3]; });
    return product;
  });
  return record_convolution<false>(call, plan, y);
}

template <bool kTransposed>
Variable record_convolution(FunctionCall& call, const ConvolutionPlan& plan, const Array& y) {
  return call.record(y, [&] {
    auto node = make_node<ConvolutionNode<kTransposed>>(plan, call.optional(2) != nullptr);
    if (call[1].requires_grad()) node->save_input(0, call[0]);
    if (call[0].requires_grad()) node->save_input(1, call[1]);
    return node;
  });
}

template Variable record_convolution<false>(FunctionCall&, const ConvolutionPlan&, const Array&);
template Variable record_convolution<true>(FunctionCall&, const ConvolutionPlan&, const Array&);

}  // namespace catena::functions
