// concat: one kernel; gradients are views.
#include "catena/functions/array/concat.h"

#include "catena/array/manipulation.h"
#include "catena/functions/array/get_item.h"
#include "functions/common/advice.h"
#include "functions/common/axes.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

// A part of x along one axis.
Variable slice_axis(const Variable& x, int axis, int64_t start, int64_t stop) {
  std::vector<Index> index(static_cast<size_t>(axis), Index(Slice()));
  index.emplace_back(Slice(start, stop));
  return get_item(x, index);
}

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
      if (context.needs(static_cast<int>(i)))
        context.set_grad(static_cast<int>(i), slice_axis(gy, axis_, start, stop));
      start = stop;
    }
  }

 private:
  int axis_;
};

std::string advice(const Array& first, const Array& other, int axis) {
  if (first.dtype() != other.dtype()) return dtype_advice(first, other);
  return message("Inputs of concat may differ in axis ", axis,
                 " only, along which they are joined.");
}

void check_first(const Array& x, int64_t axis) {
  const TypeOf first(x, "xs", 0);
  require_axis(Checks("Concat", first), first, axis);
}

void check_others(const Arrays& arrays, int axis) {
  const TypeOf first(arrays[0], "xs", 0);
  for (int i = 1; i < static_cast<int>(arrays.size()); ++i) {
    const TypeOf other(arrays[size_t(i)], "xs", i);
    const auto checks = Checks("Concat", first, other).advised([&] {
      return advice(*first.array, *other.array, axis);
    });
    checks.require(other.dtype() == first.dtype(), other.ndim() == first.ndim());
    for (int d = 0; d < arrays[0].ndim(); ++d) {
      if (d != axis) checks.require(other.shape(d) == first.shape(d));
    }
  }
}

}  // namespace

Variable concat(const Variables& xs, Axis axis) {
  CATENA_CHECK(ValueError, !xs.empty(), "concat: expected at least one input");
  Arrays arrays;
  for (const Variable& x : xs) arrays.push_back(VariableOperand(x).variable("concat").data());
  check_first(arrays[0], axis);
  const int a = normalize_axis("concat", axis, arrays[0].ndim());
  check_others(arrays, a);
  const Array y = concatenate(arrays, a);
  return record("concat", xs, y, [&] { return make_node<ConcatNode>(a); });
}

}  // namespace catena::functions
