// concat: one kernel; gradients are views.
#include "catena/functions/array/concat.h"

#include "catena/array/manipulation.h"
#include "functions/common/advice.h"
#include "functions/common/axes.h"
#include "functions/common/parts.h"

namespace catena::functions {
namespace {

class ConcatNode final : public FunctionNode {
 public:
  explicit ConcatNode(int axis) : axis_(axis) {}
  std::string label() const override { return "Concat"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    int64_t start = 0;
    for (size_t i = 0; i < inputs().size(); ++i) {
      const int64_t stop = start + inputs()[i]->shape[size_t(axis_)];
      give_linear<false>(context, static_cast<int>(i), *inputs()[i],
                         GetItem::slice(gy.shape(), axis_, start, stop), gy);
      start = stop;
    }
  }

 private:
  int axis_;
};

std::string concat_advice(const Array& first, const Array& other, int axis) {
  if (first.dtype() != other.dtype()) return dtype_advice(first, other);
  return message("Inputs of concat may differ in axis ", axis,
                 " only, along which they are joined.");
}

void check_first(const FunctionCall& call, int64_t axis) {
  const TypeOf first(call[0].data(), "xs", 0);
  require_axis(call, first, axis);
}

void check_others(const FunctionCall& call, const Arrays& arrays, int axis) {
  const TypeOf first(arrays[0], "xs", 0);
  for (int i = 1; i < static_cast<int>(arrays.size()); ++i) {
    const TypeOf other(arrays[size_t(i)], "xs", i);
    const auto checks = Checks(call.named(), first, other).advised([&] {
      return concat_advice(*first.array, *other.array, axis);
    });
    checks.require(other.dtype() == first.dtype(), other.ndim() == first.ndim());
    for (int d = 0; d < arrays[0].ndim(); ++d) {
      if (d != axis) checks.require(other.shape(d) == first.shape(d));
    }
  }
}

}  // namespace

Variable concat(const Variables& xs, Axis axis) {
  CATENA_CHECK(ValueError, !xs.empty(), "Concat: expected at least one input");
  FunctionCall call("Concat", Autocast::kWidest, xs);
  check_first(call, axis);
  Arrays arrays;
  for (const Variable* x : call.inputs()) arrays.push_back(x->data());
  const int a = normalize_axis(call.name(), axis, arrays[0].ndim());
  check_others(call, arrays, a);
  return call.record(concatenate(arrays, a), [&] { return make_node<ConcatNode>(a); });
}

}  // namespace catena::functions
