// Views, reductions, casts and copies between devices; joins and splits: array_join.cpp.
#include "catena/functions/array.h"

#include "catena/array/reduction.h"
#include "functions/support.h"

namespace catena::functions {
namespace {

using type_check::expect;

// Reshape, expand_dims, squeeze.
class ReshapeNode final : public FunctionNode {
 public:
  std::string label() const override { return "Reshape"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (gy.defined()) context.set_grad(0, reshape(gy, inputs()[0]->shape));
  }
};

Variable record_reshape(const Variable& x, const Array& y) {
  return record("reshape", x, y, [] { return make_node<ReshapeNode>(); });
}

class TransposeNode final : public FunctionNode {
 public:
  TransposeNode(const Axes& inverse, const char* label) : inverse_(inverse), label_(label) {}
  std::string label() const override { return label_; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (gy.defined()) context.set_grad(0, transpose(gy, inverse_));
  }

 private:
  Axes inverse_;
  const char* label_;
};

class BroadcastNode final : public FunctionNode {
 public:
  std::string label() const override { return "Broadcast"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    const Shape& shape = inputs()[0]->shape;
    if (context.create_graph())
      context.set_grad(0, sum_to(gy, shape));
    else
      give_sum(context, 0, gy.data(), shape);
  }
};

// Sums: over axes, or down to a shape. The gradient is a broadcast view.
class SumNode final : public FunctionNode {
 public:
  SumNode(const Shape& kept, double scale, const char* label)
      : kept_(kept), scale_(scale), label_(label) {}
  std::string label() const override { return label_; }
  void backward(BackwardContext& context) override {
    Variable gy = context.grad_output();
    if (!gy.defined()) return;
    if (scale_ != 1) gy = gy * scale_;
    context.set_grad(0, broadcast_to(reshape(gy, kept_), inputs()[0]->shape));
  }

 private:
  Shape kept_;  // of the output, with extent 1 at the summed axes
  double scale_;
  const char* label_;
};

class ExtremeNode final : public FunctionNode {
 public:
  ExtremeNode(const Shape& kept, const char* label) : kept_(kept), label_(label) {}
  std::string label() const override { return label_; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (!gy.defined()) return;
    const Array x = context.input(0).data();
    const Array mask = equal(x, context.output().data().reshape(kept_));
    context.set_grad(0, where(mask, reshape(gy, kept_), 0.0));
  }

 private:
  Shape kept_;
  const char* label_;
};

class CastNode final : public FunctionNode {
 public:
  std::string label() const override { return "Cast"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (gy.defined()) context.set_grad(0, cast(gy, inputs()[0]->dtype));
  }
};

class CopyNode final : public FunctionNode {
 public:
  std::string label() const override { return "Copy"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (gy.defined()) context.set_grad(0, copy(gy, inputs()[0]->device));
  }
};

class IdentityNode final : public FunctionNode {
 public:
  std::string label() const override { return "Identity"; }
  void backward(BackwardContext& context) override { context.set_grad(0, context.grad_output()); }
};

// Shape of x with extent 1 at the given axes.
Shape with_ones(const Shape& shape, const Axes& axes) {
  Shape kept = shape;
  for (int64_t axis : axes) kept[size_t(axis)] = 1;
  return kept;
}

void check_axes(const char* label, const Variable& x, const Axes& axes) {
  check_float(label, x);
  for (int64_t axis : axes) {
    if (axis < x.ndim() && axis >= -x.ndim()) [[likely]]
      continue;
    refuse(label, {x.data()}, [&](const TypeInfoTuple& in) {
      if (axis >= 0)
        expect(type_check::named(axis, "axis") < in[0].ndim());
      else
        expect(type_check::named(-axis, "-axis") <= in[0].ndim());
    });
  }
}

Variable apply_sum(const char* label, const VariableOperand& operand, const Axes& axes,
                   bool keepdims, bool average) {
  const Variable& x = operand.variable(label);
  check_axes(label, x, axes);
  const Axes all = normalize_axes(label, axes, x.ndim());
  const Shape kept = with_ones(x.shape(), all);
  const ReduceOptions options(axes, keepdims);
  const Array y = average ? catena::mean(x.data(), options) : catena::sum(x.data(), options);
  const double scale =
      average && x.size() > 0 ? static_cast<double>(y.size()) / static_cast<double>(x.size()) : 1;
  return record(label, x, y, [&] { return make_node<SumNode>(kept, scale, label); });
}

Variable apply_extreme(const char* label, bool maximum, const VariableOperand& operand,
                       const Axes& axes, bool keepdims) {
  const Variable& x = operand.variable(label);
  check_axes(label, x, axes);
  const Shape kept = with_ones(x.shape(), normalize_axes(label, axes, x.ndim()));
  const ReduceOptions options(axes, keepdims);
  const Array y = maximum ? amax(x.data(), options) : amin(x.data(), options);
  return record(label, x, y, [&] {
    auto node = make_node<ExtremeNode>(kept, label);
    node->save_input(0, x);
    node->save_output(0, y);
    return node;
  });
}

Variable apply_transpose(const Variable& x, const Axes& axes, const char* label) {
  Axes order = axes;
  if (order.empty()) {
    for (int i = x.ndim() - 1; i >= 0; --i) order.push_back(i);
  }
  const Array y = x.ndim() == 0 ? x.data() : x.data().transpose(order);
  return record(label, x, y, [&] {
    Axes inverse(order.size(), 0);
    for (size_t i = 0; i < order.size(); ++i)
      inverse[size_t(order[i] < 0 ? order[i] + x.ndim() : order[i])] = int64_t(i);
    return make_node<TransposeNode>(inverse, label);
  });
}

void check_reshape(const Variable& x, const Shape& shape) {
  int64_t known = 1;
  int unknown = 0;
  for (int64_t extent : shape) {
    if (extent == -1)
      ++unknown;
    else
      known *= extent;
  }
  CATENA_CHECK(ValueError, unknown <= 1, "reshape: at most one extent may be -1, got ", shape);
  const bool fits = unknown ? known != 0 && x.size() % known == 0 : x.size() == known;
  if (fits) [[likely]]
    return;
  refuse("Reshape", {x.data()}, [&](const TypeInfoTuple& in) {
    const auto size = type_check::named(x.size(), "prod(in_types[0].shape)");
    if (!unknown) expect(size == type_check::named(known, message("prod", shape)));
    const auto rest = type_check::named(known, message("known_size(=", known, ")"));
    if (known) expect(size % rest == 0);
    expect(rest != 0);
    expect(in.size() == 1);
  });
}

}  // namespace

Variable sum(const VariableOperand& x, const AxisList& axes, bool keepdims) {
  return apply_sum("Sum", x, axes.axes, keepdims, false);
}
Variable mean(const VariableOperand& x, const AxisList& axes, bool keepdims) {
  return apply_sum("Mean", x, axes.axes, keepdims, true);
}
Variable max(const VariableOperand& x, const AxisList& axes, bool keepdims) {
  return apply_extreme("Max", true, x, axes.axes, keepdims);
}
Variable min(const VariableOperand& x, const AxisList& axes, bool keepdims) {
  return apply_extreme("Min", false, x, axes.axes, keepdims);
}

Variable sum_to(const VariableOperand& operand, const Shape& shape) {
  const Variable& x = operand.variable("sum_to");
  if (x.shape() == shape) return x;
  const Array y = catena::sum_to(x.data(), shape);
  return record("sum_to", x, y, [&] {
    Shape kept(size_t(x.ndim() - shape.ndim()), 1);
    kept.insert(kept.end(), shape.begin(), shape.end());
    return make_node<SumNode>(kept, 1.0, "SumTo");
  });
}

Variable reshape(const VariableOperand& operand, const Shape& shape) {
  const Variable& x = operand.variable("reshape");
  if (x.shape() == shape) return x;
  check_reshape(x, shape);
  return record_reshape(x, x.data().reshape(shape));
}

Variable expand_dims(const VariableOperand& operand, int64_t axis) {
  const Variable& x = operand.variable("expand_dims");
  return record_reshape(x, x.data().expand_dims(axis));
}

Variable squeeze(const VariableOperand& operand, const AxisList& axes) {
  const Variable& x = operand.variable("squeeze");
  return record_reshape(x, x.data().squeeze(axes.axes));
}

Variable transpose(const VariableOperand& x, const Axes& axes) {
  return apply_transpose(x.variable("transpose"), axes, "Transpose");
}

Variable swapaxes(const VariableOperand& operand, int64_t axis1, int64_t axis2) {
  const Variable& x = operand.variable("swapaxes");
  Axes order;
  for (int i = 0; i < x.ndim(); ++i) order.push_back(i);
  std::swap(order[size_t(normalize_axis("swapaxes", axis1, x.ndim()))],
            order[size_t(normalize_axis("swapaxes", axis2, x.ndim()))]);
  return apply_transpose(x, order, "Swapaxes");
}

Variable broadcast_to(const VariableOperand& operand, const Shape& shape) {
  const Variable& x = operand.variable("broadcast_to");
  if (x.shape() == shape) return x;
  return record("broadcast_to", x, x.data().broadcast_to(shape),
                [] { return make_node<BroadcastNode>(); });
}

Variables broadcast(const Variables& xs) {
  Shape shape;
  Arrays arrays;
  for (const Variable& x : xs) arrays.push_back(VariableOperand(x).variable("broadcast").data());
  try {
    CATENA_CHECK(ShapeError, !xs.empty(), "broadcast: expected at least one input");
    for (const Array& a : arrays) shape = broadcast_shapes("broadcast", shape, a.shape());
  } catch (const ShapeError&) {
    std::string shapes;
    for (const Array& a : arrays) shapes += (shapes.empty() ? "" : ", ") + to_string(a.shape());
    fail<InvalidType>(
        "Invalid operation is performed in: Broadcast (Forward)\n\nExpect: each dimension has the "
        "same size or is 1\nActual: shapes: ",
        shapes);
  }
  Variables results;
  for (const Variable& x : xs) results.push_back(broadcast_to(x, shape));
  return results;
}

Variable cast(const VariableOperand& operand, Dtype dtype) {
  const Variable& x = operand.variable("cast");
  if (x.dtype() == dtype) return x;
  const Array y = x.data().astype(dtype);
  if (!is_float(dtype) || !is_float(x.dtype())) return Variable::constant(y);
  return record("cast", x, y, [] { return make_node<CastNode>(); });
}

Variable copy(const VariableOperand& operand, Device device) {
  const Variable& x = operand.variable("copy");
  return record("copy", x, x.data().to(device), [] { return make_node<CopyNode>(); });
}

Variable identity(const VariableOperand& operand) {
  const Variable& x = operand.variable("identity");
  return record("identity", x, x.data(), [] { return make_node<IdentityNode>(); });
}
Variables identity(const Variables& xs) {
  Variables ys;
  for (const Variable& x : xs) ys.push_back(identity(VariableOperand(x)));
  return ys;
}

}  // namespace catena::functions
