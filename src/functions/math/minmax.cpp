// max and min: one kernel forward, and one backward along neighbouring axes; else the gradient goes
// through a mask.
#include "catena/functions/math/minmax.h"

#include <optional>

#include "catena/array/reduction.h"
#include "catena/core/entry_scope.h"
#include "catena/functions/array/reshape.h"
#include "catena/kernels/extreme.h"
#include "functions/common/axes.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

// A contiguous x as the kernel takes it, (outer, n, inner), where the reduced axes, those that have
// one element in `kept`, are neighbours.
std::optional<Shape> kernel_view(const Array& x, const Shape& kept) {
  if (x.size() == 0 || !x.is_contiguous()) return std::nullopt;
  Shape view{1, 1, 1};
  size_t part = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    const int64_t extent = x.shape()[i];
    if (extent == 1) continue;
    const bool reduced = kept[i] == 1;
    if (reduced && part == 2) return std::nullopt;
    if (reduced != (part == 1)) ++part;
    view[part] *= extent;
  }
  return view;
}

class ExtremeNode final : public FunctionNode {
 public:
  ExtremeNode(const Shape& kept, const char* label) : kept_(kept), label_(label) {}
  std::string label() const override { return label_; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    const Array x = context.input(0).data(), y = context.output().data();
    if (!context.create_graph()) {
      const auto view = kernel_view(x, kept_);
      if (view) return give_one_pass(context, *view, x, y, gy.data());
    }
    const Array mask = equal(x, y.reshape(kept_));
    context.set_grad(0, where(mask, reshape(gy, kept_), 0.0));
  }

 private:
  static void give_one_pass(BackwardContext& context, const Shape& view, const Array& x,
                            const Array& y, const Array& gy) {
    const Shape extremes{view[0], view[2]};
    const auto viewed = [&](const Array& a) { return a.contiguous().reshape(extremes); };
    const Array gx = Array::uninitialized(x.shape(), x.dtype(), x.device());
    kernels::extreme_grad(x.device(), {x.reshape(view), viewed(y), viewed(gy), gx.reshape(view)});
    context.set_grad(0, Variable::constant(gx));
  }

  Shape kept_;
  const char* label_;
};

Variable apply_extreme(const char* label, bool maximum, const VariableOperand& operand,
                       const ReduceAxes& over, bool keepdims) {
  FunctionCall call(label, Autocast::kNone, operand);
  const Variable& x = call[0];
  check_axes(call, x.data(), over.axes);
  const Shape kept = with_ones(x.shape(), normalize_axes(label, over.axes, x.ndim()));
  const auto reduced = [&] {
    const EntryScope named(label);
    return maximum ? amax(x.data(), over, keepdims) : amin(x.data(), over, keepdims);
  };
  const Array y = reduced();
  return call.record(y, [&] {
    auto node = make_node<ExtremeNode>(kept, label);
    node->save_input(0, x);
    node->save_output(0, y);
    return node;
  });
}

}  // namespace

Variable max(const VariableOperand& x, const ReduceAxes& axes, YesNo keepdims) {
  return apply_extreme("Max", true, x, axes, keepdims);
}
Variable min(const VariableOperand& x, const ReduceAxes& axes, YesNo keepdims) {
  return apply_extreme("Min", false, x, axes, keepdims);
}

}  // namespace catena::functions
