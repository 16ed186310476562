#include "catena/functions/normalization/local_response_normalization.h"

#include <algorithm>

#include "catena/array/indexing.h"
#include "catena/functions/array/cast.h"
#include "catena/kernels/local_response.h"
#include "functions/common/layout.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

constexpr const char* kName = "LocalResponseNormalization";

ChannelLayout channel_layout(const Shape& shape, const BatchLayout& layout) {
  ChannelLayout l{shape[0], shape[1], 1};
  for (size_t i = 2; i < shape.size(); ++i) (layout.last ? l.outer : l.inner) *= shape[i];
  return l;
}

// The sum over the window of each channel, a symmetric map.
struct WindowSum {
  static constexpr const char* kName = "ChannelWindowSum";
  int64_t half;

  Array forward(const Array& x) const {
    const int64_t channels = x.shape()[1];
    const Array y = x.copy();
    for (int64_t d = 1; d <= std::min(half, channels - 1); ++d) {
      const Array upper = y(Slice(), Slice(d, none)), lower = y(Slice(), Slice(none, channels - d));
      catena::add(upper, x(Slice(), Slice(none, channels - d)), upper);
      catena::add(lower, x(Slice(), Slice(d, none)), lower);
    }
    return y;
  }
  Array adjoint(const Array& gy) const { return forward(gy); }
};

Variable window_sum(const Variable& x, int64_t half) {
  FunctionCall call(WindowSum::kName, Autocast::kNone, x);
  return linear_map(call, WindowSum{half});
}

class LocalResponseNode final : public FunctionNode {
 public:
  LocalResponseNode(const BatchLayout& layout, const LocalResponse& rule)
      : layout_(layout), rule_(rule) {}
  std::string label() const override { return kName; }

  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined() || !context.needs(0)) return;
    if (context.create_graph()) return context.set_grad(0, composed(context.input(0), gy));
    const Array x = layout_.laid_out(context.input(0).data());
    const Array g = layout_.laid_out(gy.data());
    const Array gx = layout_.uninitialized(x.shape(), x);
    if (gx.size() > 0)
      kernels::local_response_grad(gx.device(),
                                   {channel_layout(x.shape(), layout_), &x, &g, &gx, rule_});
    context.set_grad(0, Variable::constant(gx));
  }

 private:
  // The same on variables.
  Variable composed(const Variable& operand, const Variable& gy) const {
    const Dtype wide = compute_dtype(operand.dtype());
    const Variable x = cast(operand, wide), g = cast(gy, wide);
    const int64_t half = rule_.n / 2;
    const Variable scale = rule_.k + rule_.alpha * window_sum(square(x), half);
    const Variable power = pow(scale, -rule_.beta);
    const Variable sum = window_sum(x * g * power / scale, half);
    return cast(g * power - 2 * rule_.alpha * rule_.beta * x * sum, operand.dtype());
  }

  BatchLayout layout_;
  LocalResponse rule_;
};

void check_local_response(const FunctionCall& call) {
  const TypeOf in(call[0].data(), "x");
  const Checks checks(call.named(), in);
  checks.require_float(in);
  checks.advised("Expected is (n, channels, ...): the channels are axis 1.")
      .require(in.ndim() >= 2);
}

}  // namespace

Variable local_response_normalization(const VariableOperand& operand, int64_t n, double k,
                                      double alpha, double beta) {
  CATENA_CHECK(ValueError, n >= 1, kName, ": expected a window of at least 1 channel, got n = ", n);
  FunctionCall call(kName, Autocast::kNone, operand);
  check_local_response(call);
  const LocalResponse rule{n, k, alpha, beta};
  const BatchLayout layout = BatchLayout::of(call[0].data(), 1);
  const Array x = layout.laid_out(call[0].data());
  const Array y = layout.uninitialized(x.shape(), x);
  if (y.size() > 0)
    kernels::local_response(x.device(), {channel_layout(x.shape(), layout), &x, &y, rule});
  return call.record(y, [&] {
    auto node = make_node<LocalResponseNode>(layout, rule);
    node->save_input(0, call[0]);
    return node;
  });
}

}  // namespace catena::functions
