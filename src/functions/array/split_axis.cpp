// split_axis: views; the gradient joins those of the parts.
#include "catena/functions/array/split_axis.h"

#include "catena/array/creation.h"
#include "catena/functions/array/concat.h"
#include "functions/common/axes.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

// The parts as one array without a copy, where they are side by side in one memory, as the gradient
// of attention writes them; else undefined.
Array joined_view(const Variables& parts, int axis) {
  const Array& first = parts[0].data();
  const auto* const begin = static_cast<const char*>(first.raw_data());
  const auto along = static_cast<size_t>(axis);
  Shape shape = first.shape();
  shape[along] = 0;
  for (const Variable& part : parts) {
    const Array& a = part.data();
    if (a.storage() != first.storage() || a.strides() != first.strides() ||
        a.raw_data() != begin + shape[along] * first.strides()[along])
      return {};
    shape[along] += a.shape()[along];
  }
  return Array::from_storage(first.storage(),
                             begin - static_cast<const char*>(first.storage()->data), shape,
                             first.strides(), first.dtype());
}

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
    const Array joined = context.create_graph() ? Array() : joined_view(grads, axis_);
    context.set_grad(0, joined.defined() ? Variable::constant(joined) : concat(grads, axis_));
  }

 private:
  int axis_;
  std::vector<Shape> parts_;
};

Variables record_split(FunctionCall& call, const std::vector<Array>& parts, int axis) {
  return call.record(parts, [&] {
    std::vector<Shape> shapes;
    for (const Array& part : parts) shapes.push_back(part.shape());
    return make_node<SplitNode>(axis, std::move(shapes));
  });
}

int checked_axis(const FunctionCall& call, int64_t axis) {
  const TypeOf in(call[0].data(), "x");
  require_axis(call, in, axis);
  return normalize_axis(call.name(), axis, call[0].ndim());
}

std::string extent_text(const TypeOf& in, int axis) {
  return message("Axis ", axis, " has ", in.shape(axis).get(), " elements");
}

std::string sections_advice(const TypeOf& in, int axis, int64_t sections) {
  return message(extent_text(in, axis), ", which cannot be cut into ", sections,
                 " equal parts: give a number that divides them, or the positions of the cuts, "
                 "split_axis(x, {1, 3}).");
}

std::string positions_advice(const TypeOf& in, int axis, const Axes& positions) {
  return message(extent_text(in, axis), ": positions of cuts are 0 to ", in.shape(axis).get(),
                 "; those given are ", positions, ".");
}

}  // namespace

Variables split_axis(const VariableOperand& operand, int64_t sections, Axis axis) {
  FunctionCall call("SplitAxis", Autocast::kNone, operand);
  const Variable& x = call[0];
  const int a = checked_axis(call, axis);
  CATENA_CHECK(ValueError, sections > 0, call.name(), ": expected at least one section, got ",
               sections);
  const TypeOf in(x.data(), "x");
  Checks(call.named(), in)
      .advised([&] { return sections_advice(in, a, sections); })
      .require(in.shape(a) % shown(sections, "sections") == 0);
  return record_split(call, split(x.data(), sections, a), a);
}

Variables split_axis(const VariableOperand& operand, const Axes& positions, Axis axis) {
  FunctionCall call("SplitAxis", Autocast::kNone, operand);
  const Variable& x = call[0];
  const int a = checked_axis(call, axis);
  int64_t previous = 0;
  for (int64_t position : positions) {
    CATENA_CHECK(ValueError, position >= previous, call.name(), ": cut positions must ascend, got ",
                 positions);
    previous = position;
  }
  const TypeOf in(x.data(), "x");
  Checks(call.named(), in)
      .advised([&] { return positions_advice(in, a, positions); })
      .require(in.shape(a) >= shown(previous, "max_index"));
  return record_split(call, split(x.data(), positions, a), a);
}

}  // namespace catena::functions
