// concat: one kernel; gradients are views.
#include "catena/functions/array/concat.h"

#include "catena/array/manipulation.h"
#include "catena/functions/array/get_item.h"
#include "functions/advice.h"
#include "functions/support.h"

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

// About the first input whose dtype is not that of input 0.
std::string advice(const Arrays& arrays) {
  for (const Array& other : arrays) {
    if (other.dtype() != arrays[0].dtype()) return dtype_advice(arrays[0], other);
  }
  return {};
}

void check_types(const Arrays& arrays, int axis) {
  const Checks checks("Concat", [&] { return advice(arrays); });
  const TypeOf first(arrays[0], 0);
  checks.require(first.ndim() > shown(axis, "axis"), shown(axis, "axis") >= 0);
  for (int i = 1; i < static_cast<int>(arrays.size()); ++i) {
    const TypeOf other(arrays[size_t(i)], i);
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
  const int a = static_cast<int>(axis < 0 ? axis + arrays[0].ndim() : int64_t{axis});
  check_types(arrays, a);
  const Array y = concatenate(arrays, a);
  return record("concat", xs, y, [&] { return make_node<ConcatNode>(a); });
}

}  // namespace catena::functions
