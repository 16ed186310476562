// reshape, expand_dims and squeeze: views wherever the layout allows one.
#include "catena/functions/array/reshape.h"

#include "functions/support.h"

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
  const Checks checks("Reshape");
  const auto size = shown(x.size(), "prod(in_types[0].shape)");
  if (unknown == 0)
    return checks.require(size == shown(known, [&] { return message("prod", shape); }));
  const auto rest = shown(known, [&] { return message("known_size(=", known, ")"); });
  checks.require(rest != 0, size % rest == 0);
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
