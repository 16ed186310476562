// reshape, expand_dims and squeeze: views wherever the layout allows one.
#include "catena/functions/array/reshape.h"

#include "catena/autograd/linear_map.h"
#include "functions/common/checks.h"

namespace catena::functions {
namespace {

// Reshape, expand_dims, squeeze.
struct Reshape {
  static constexpr const char* kName = "Reshape";
  Shape from, to;
  Array forward(const Array& x) const { return x.reshape(to); }
  Array adjoint(const Array& gy) const { return gy.reshape(from); }
};

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

void check_shape(const FunctionCall& call, const Shape& shape) {
  const Array& x = call[0].data();
  int64_t known = 1;
  int unknown = 0;
  for (int64_t extent : shape) {
    if (extent == -1)
      ++unknown;
    else
      known *= extent;
  }
  CATENA_CHECK(ValueError, unknown <= 1, call.name(), ": at most one extent may be -1, got ",
               shape);
  const TypeOf in(x, "x");
  const Checks checks(call.named(), in);
  const auto size = shown(x.size(), "prod(x.shape)");
  if (unknown == 0)
    return checks.advised([&] { return size_advice(x, shape, known); })
        .require(size == shown(known, [&] { return message("prod", shape); }));
  const auto rest = shown(known, [&] { return message("known_size(=", known, ")"); });
  checks.advised([&] { return rest_advice(x, shape, known); }).require(rest != 0, size % rest == 0);
}

}  // namespace

Variable reshape(const VariableOperand& operand, const Shape& shape) {
  const Variable& x = operand.variable(Reshape::kName);
  if (x.shape() == shape) return x;
  FunctionCall call(Reshape::kName, Autocast::kNone, x);
  check_shape(call, shape);
  return linear_map(call, Reshape{x.shape(), shape});
}

Variable expand_dims(const VariableOperand& x, Axis axis) {
  FunctionCall call("ExpandDims", Autocast::kNone, x);
  const Array& data = call[0].data();
  return linear_map(call, Reshape{data.shape(), data.expand_dims(axis).shape()});
}

Variable squeeze(const VariableOperand& x, const AxisList& axes) {
  FunctionCall call("Squeeze", Autocast::kNone, x);
  const Array& data = call[0].data();
  return linear_map(call, Reshape{data.shape(), data.squeeze(axes).shape()});
}

}  // namespace catena::functions
