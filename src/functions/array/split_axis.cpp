// Joins, splits and basic indexing.
#include "catena/array/creation.h"
#include "catena/functions/array.h"
#include "functions/support.h"

namespace catena::functions {
namespace {

using type_check::expect;

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

class SplitNode final : public FunctionNode {
 public:
  SplitNode(int axis, std::vector<Shape> parts) : axis_(axis), parts_(std::move(parts)) {}
  std::string label() const override { return "SplitAxis"; }
  void backward(BackwardContext& context) override {
    Variables grads;
    bool any = false;
    for (size_t j = 0; j < parts_.size(); ++j) {
      Variable gy = context.grad_output(static_cast<int>(j));
      any = any || gy.defined();
      grads.push_back(gy);
    }
    if (!any) return;
    const VariableNode& input = *inputs()[0];
    for (size_t j = 0; j < parts_.size(); ++j) {
      if (!grads[j].defined())
        grads[j] = Variable::constant(zeros(parts_[j], {input.dtype, input.device}));
    }
    context.set_grad(0, concat(grads, axis_));
  }

 private:
  int axis_;
  std::vector<Shape> parts_;
};

// Zeros of a shape with gy at the indexed place.
Variable put_item(const Variable& gy, const std::vector<Index>& indices, const Shape& shape);

class PutItemNode final : public FunctionNode {
 public:
  explicit PutItemNode(const std::vector<Index>& indices) : indices_(indices) {}
  std::string label() const override { return "PutItem"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (gy.defined()) context.set_grad(0, get_item(gy, indices_));
  }

 private:
  std::vector<Index> indices_;
};

class GetItemNode final : public FunctionNode {
 public:
  explicit GetItemNode(const std::vector<Index>& indices) : indices_(indices) {}
  std::string label() const override { return "GetItem"; }
  void backward(BackwardContext& context) override {
    const Variable gy = context.grad_output();
    if (gy.defined()) context.set_grad(0, put_item(gy, indices_, inputs()[0]->shape));
  }

 private:
  std::vector<Index> indices_;
};

Variable put_item(const Variable& gy, const std::vector<Index>& indices, const Shape& shape) {
  const Array y = zeros(shape, {gy.dtype(), gy.device()});
  y.at(std::span<const Index>(indices)).assign(gy.data());
  return record("put_item", gy, y, [&] { return make_node<PutItemNode>(indices); });
}

Shape without_axis(const Shape& shape, int axis) {
  Shape rest = shape;
  rest.erase(rest.begin() + axis);
  return rest;
}

void check_concat(const Arrays& arrays, int axis) {
  const Array& first = arrays[0];
  const bool in_range = axis >= 0 && axis < first.ndim();
  for (const Array& a : arrays) {
    if (in_range && a.dtype() == first.dtype() && a.ndim() == first.ndim() &&
        without_axis(a.shape(), axis) == without_axis(first.shape(), axis))
      continue;
    refuse("Concat", arrays, [&](const TypeInfoTuple& in) {
      expect(in[0].ndim() > type_check::named(axis, "axis"));
      for (int i = 1; i < static_cast<int>(arrays.size()); ++i) {
        expect(in[i].dtype() == in[0].dtype());
        expect(in[i].ndim() == in[0].ndim());
        for (int d = 0; d < first.ndim(); ++d) {
          if (d != axis) expect(in[i].shape(d) == in[0].shape(d));
        }
      }
    });
  }
}

Variables record_split(const Variable& x, const std::vector<Array>& parts, int axis) {
  const std::span<const Variable> inputs(&x, 1);
  if (must_record("split_axis", inputs)) {
    std::vector<Shape> shapes;
    for (const Array& part : parts) shapes.push_back(part.shape());
    return make_node<SplitNode>(axis, std::move(shapes))->connect(inputs, parts);
  }
  Variables results;
  for (const Array& part : parts) results.push_back(unrecorded(inputs, part));
  return results;
}

int split_axis_of(const Variable& x, int64_t axis) {
  if (axis < x.ndim() && axis >= -x.ndim()) [[likely]]
    return normalize_axis("split_axis", axis, x.ndim());
  refuse("SplitAxis", {x.data()}, [&](const TypeInfoTuple& in) {
    if (axis >= 0)
      expect(in[0].ndim() > type_check::named(axis, "axis"));
    else
      expect(in[0].ndim() >= type_check::named(-axis, "-axis"));
  });
}

}  // namespace

Variable concat(const Variables& xs, int64_t axis) {
  CATENA_CHECK(ValueError, !xs.empty(), "concat: expected at least one input");
  Arrays arrays;
  for (const Variable& x : xs) arrays.push_back(VariableOperand(x).variable("concat").data());
  const int a = static_cast<int>(axis < 0 ? axis + arrays[0].ndim() : axis);
  check_concat(arrays, a);
  const Array y = concatenate(arrays, a);
  return record("concat", xs, y, [&] { return make_node<ConcatNode>(a); });
}

Variables split_axis(const VariableOperand& operand, int64_t sections, int64_t axis) {
  const Variable& x = operand.variable("split_axis");
  const int a = split_axis_of(x, axis);
  CATENA_CHECK(ValueError, sections > 0, "split_axis: expected at least one section, got ",
               sections);
  if (x.shape()[size_t(a)] % sections != 0) {
    refuse("SplitAxis", {x.data()}, [&](const TypeInfoTuple& in) {
      expect(in[0].shape(a) % type_check::named(sections, "sections") == 0);
    });
  }
  return record_split(x, split(x.data(), sections, a), a);
}

Variables split_axis(const VariableOperand& operand, const Axes& positions, int64_t axis) {
  const Variable& x = operand.variable("split_axis");
  const int a = split_axis_of(x, axis);
  int64_t previous = 0;
  for (int64_t position : positions) {
    CATENA_CHECK(ValueError, position >= previous, "split_axis: cut positions must ascend, got ",
                 positions);
    previous = position;
  }
  if (previous > x.shape()[size_t(a)]) {
    refuse("SplitAxis", {x.data()}, [&](const TypeInfoTuple& in) {
      expect(in[0].shape(a) >= type_check::named(previous, "max_index"));
    });
  }
  return record_split(x, split(x.data(), positions, a), a);
}

Variable get_item(const VariableOperand& operand, const std::vector<Index>& indices) {
  const Variable& x = operand.variable("get_item");
  const Array y = x.data().at(std::span<const Index>(indices));
  return record("get_item", x, y, [&] { return make_node<GetItemNode>(indices); });
}

}  // namespace catena::functions
