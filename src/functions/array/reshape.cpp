// reshape, expand_dims and squeeze: views wherever the layout allows one.
#include "catena/functions/array/reshape.h"

#include "functions/common/support.h"

namespace catena::functions {
namespace {

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

std::string size_advice(const Array& x, const Shape& shape, int64_t size) {
  return message("x has ", x.size(), " elements, ", shape, " has ", size, ": give a shape of ",
                 x.size(),
                 " elements, or -1 for one extent that follows "
                 "from the others.");
}

std::string rest_advice(const Array& x, const Shape& shape, int64_t known) {
  if (known == 0)
    return message("Beside an extent of 0 any number fits for the -1 of ", shape,
                   ": write the number.");
  return message("x has ", x.size(), " elements; the extents of ", shape, " beside -1 make ", known,
                 ", which does not divide that: give extents that do.");
}

void check_shape(const Array& x, const Shape& shape) {
  int64_t known = 1;
  int unknown = 0;
  for (int64_t extent : shape) {
    if (extent == -1)
      ++unknown;
    else
      known *= extent;
  }
  CATENA_CHECK(ValueError, unknown <= 1, "reshape: at most one extent may be -1, got ", shape);
  const TypeOf in(x, "x");
  const Checks checks("Reshape", in);
  const auto size = shown(x.size(), "prod(x.shape)");
  if (unknown == 0)
    return checks.advised([&] { return size_advice(x, shape, known); })
        .require(size == shown(known, [&] { return message("prod", shape); }));
  const auto rest = shown(known, [&] { return message("known_size(=", known, ")"); });
  checks.advised([&] { return rest_advice(x, shape, known); }).require(rest != 0, size % rest == 0);
}

}  // namespace

Variable reshape(const VariableOperand& operand, const Shape& shape) {
  const Variable& x = operand.variable("reshape");
  if (x.shape() == shape) return x;
  check_shape(x.data(), shape);
  return record_reshape(x, x.data().reshape(shape));
}

Variable expand_dims(const VariableOperand& operand, Axis axis) {
  const Variable& x = operand.variable("expand_dims");
  return record_reshape(x, x.data().expand_dims(axis));
}

Variable squeeze(const VariableOperand& operand, const AxisList& axes) {
  const Variable& x = operand.variable("squeeze");
  return record_reshape(x, x.data().squeeze(axes));
}

}  // namespace catena::functions
