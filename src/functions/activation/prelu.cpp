// prelu and the layer PReLU: leaky_relu with a slope that has the shape of some axes. Its two
// gradients are one kernel where both are wanted.
#include "catena/functions/activation/prelu.h"

#include <algorithm>

#include "array/memory_order.h"
#include "catena/array/creation.h"
#include "catena/array/elementwise.h"
#include "catena/functions/activation/elementwise.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/math/sum.h"
#include "catena/kernels/elementwise.h"
#include "catena/kernels/prelu.h"
#include "functions/common/advice.h"
#include "functions/common/support.h"
#include "functions/common/weighted_layer.h"

namespace catena::functions {

// Rows of the element-wise table.
Variable leaky_relu_grad(const VariableOperand& gy, const VariableOperand& x,
                         const VariableOperand& slope);
Variable leaky_relu_grad_slope(const VariableOperand& gy, const VariableOperand& x);

namespace {

// The shape of W among the axes of x.
Shape aligned_shape(const Shape& W, int ndim) {
  Shape aligned(size_t(ndim), 1);
  std::copy(W.begin(), W.end(), aligned.begin() + 1);
  return aligned;
}

// A dense x as the kernel takes it: the order in which it visits the axes, and the extents.
struct KernelView {
  MemoryOrder order;
  Shape shape;  // (outer, channels, inner)
};
std::optional<KernelView> kernel_view(const Array& x, const Array& W) {
  if (x.size() == 0 || !x.is_dense()) return std::nullopt;
  const int64_t size = x.size(), channels = W.size();
  if (x.is_contiguous()) {
    const int64_t outer = x.shape()[0];
    return KernelView{MemoryOrder(), {outer, channels, size / outer / channels}};
  }
  if (W.ndim() == 0) return KernelView{x.order(), {1, 1, size}};
  std::vector<int> last{0};
  for (int i = 2; i < x.ndim(); ++i) last.push_back(i);
  last.push_back(1);
  const MemoryOrder channels_last(last);
  if (W.ndim() != 1 || !(x.order() == channels_last)) return std::nullopt;
  return KernelView{channels_last, {size / channels, channels, 1}};
}

class PReLUNode final : public FunctionNode {
 public:
  std::string label() const override { return "PReLU"; }

  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    const Variable x = context.input(0), W = context.input(1);
    if (!context.create_graph() && context.needs(0) && context.needs(1)) {
      const auto view = kernel_view(x.data(), W.data());
      if (view) return give_both(context, *view, x.data(), gy.data(), W.data());
    }
    const Shape aligned = aligned_shape(W.shape(), x.ndim());
    if (context.needs(0)) context.set_grad(0, leaky_relu_grad(gy, x, reshape(W, aligned)));
    if (context.needs(1))
      context.set_grad(1, reshape(sum_to(leaky_relu_grad_slope(gy, x), aligned), W.shape()));
  }

 private:
  static void give_both(BackwardContext& context, const KernelView& view, const Array& x,
                        const Array& gy, const Array& W) {
    const auto viewed = [&](const Array& a) {
      return in_order(a, view.order).contiguous().reshape(view.shape);
    };
    const Array slopes = W.contiguous().reshape({W.size()});
    give(context, 1, W.shape(), W, [&](const Array& gW) {
      const Array gx = Array::uninitialized(x.shape(), x.dtype(), x.device(), view.order);
      kernels::prelu_grad(x.device(),
                          {viewed(x), viewed(gy), slopes, viewed(gx), gW.reshape({W.size()})});
      context.set_grad(0, Variable::constant(gx));
    });
  }
};

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
  const Shape aligned = aligned_shape(W.shape(), x.ndim());
  if (x.dtype() != W.dtype()) return leaky_relu(x, reshape(W, aligned));  // unchecked
  static const ElementwiseOp op = elementwise_op("leaky_relu");
  const Array y = elementwise(op, {x.data(), W.data().contiguous().reshape(aligned)});
  return call.record(y, [&] {
    auto node = make_node<PReLUNode>();
    node->save_input(0, x);
    node->save_input(1, W);
    return node;
  });
}

PReLU::PReLU(const Shape& shape, const PReLUOptions& options) : W(initial_slopes(shape, options)) {}

Variable PReLU::operator()(const VariableOperand& x) const {
  CATENA_CHECK(ValueError, W.defined(), "PReLU: this layer has no slopes; it was moved from");
  return prelu(x, W.variable());
}

}  // namespace catena::functions
