// cumprod: a scan of products; its gradient by scans, too.
#include "catena/functions/math/cumprod.h"

#include "catena/array/indexing.h"
#include "catena/array/logic.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/scan.h"
#include "catena/functions/array/concat.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/array/split_axis.h"
#include "functions/common/over_axes.h"

namespace catena::functions {
namespace {

Array sums_from_each(const Array& a, int axis) {
  return flip(catena::cumsum(flip(a, axis), axis), axis);
}

// The gradient where nothing differentiates it. Element i before the first zero gets the sum over
// j >= i of gy[j] y[j] / x[i]. The first zero gets the same of products that leave it out; all
// products behind it are 0, whatever the elements there are.
Array gradient(const Array& x, const Array& gy, int axis) {
  const Array zero = equal(x, 0), seen = catena::cumsum(zero, axis), before = equal(seen, 0),
              first = logical_and(zero, equal(seen, 1)), factors = catena::where(first, 1.0, x);
  const Array terms = catena::multiply(gy, catena::cumprod(factors, axis));
  const Array of_others =
                  catena::divide(sums_from_each(catena::where(before, terms, 0.0), axis), factors),
              of_zero = sums_from_each(catena::where(before, 0.0, terms), axis);
  return catena::where(before, of_others, catena::where(first, of_zero, 0.0));
}

Variable products(const Variable& x, int axis);

// The gradient for further differentiation, without a division: y[i - 1] times
// s[i] = gy[i] + x[i + 1] s[i + 1]. Each step makes s from the next twice as many elements.
Variable differentiable_gradient(const Variable& x, const Variable& gy, int axis) {
  const int64_t extent = x.shape()[size_t(axis)];
  if (extent < 2) return gy;
  const auto parts = [&](const Variable& v, int64_t at) { return split_axis(v, Axes{at}, axis); };
  Variable s = gy, factors = parts(x, 1)[1];
  for (int64_t width = 1; width < extent; width *= 2) {
    const Variables sums = parts(s, extent - width);
    s = concat({sums[0] + factors * parts(s, width)[1], sums[1]}, axis);
    const int64_t left = extent - 2 * width;
    if (left > 0) factors = parts(factors, left)[0] * parts(factors, width)[1];
  }
  const Variables ends = parts(s, 1);
  return concat({ends[0], parts(products(x, axis), extent - 1)[0] * ends[1]}, axis);
}

class CumprodNode final : public FunctionNode {
 public:
  explicit CumprodNode(int axis) : axis_(axis) {}
  std::string label() const override { return "Cumprod"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    const Variable x = context.input(0);
    context.set_grad(0, context.create_graph()
                            ? differentiable_gradient(x, gy, axis_)
                            : Variable::constant(gradient(x.data(), gy.data(), axis_)));
  }

 private:
  int axis_;
};

Variable products(const Variable& x, int axis) {
  FunctionCall call("Cumprod", Autocast::kNone, x);
  return call.record(catena::cumprod(x.data(), axis), [&] {
    auto node = make_node<CumprodNode>(axis);
    node->save_input(0, x);
    return node;
  });
}

}  // namespace

Variable cumprod(const VariableOperand& operand, OptionalAxis axis) {
  FunctionCall call("Cumprod", Autocast::kFloat32, operand);
  const Variable& x = call[0];
  check_axes(call, x.data(), axis ? Axes{*axis} : Axes{});
  if (!axis) return cumprod(reshape(x, {x.size()}), 0);
  // Products of some elements, which gradients are made of and GPUs multiply, may leave the range
  // of float32 where the product of all does not.
  const Variable wide = cast(x, Dtype::kFloat64);
  return cast(products(wide, normalize_axis(call.name(), *axis, x.ndim())), x.dtype());
}

}  // namespace catena::functions
