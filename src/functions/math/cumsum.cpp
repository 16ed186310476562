// cumsum: a linear map whose adjoint sums from the other end.
#include "catena/functions/math/cumsum.h"

#include "catena/array/manipulation.h"
#include "catena/array/scan.h"
#include "catena/autograd/linear_map.h"
#include "catena/functions/array/reshape.h"
#include "functions/common/axes.h"

namespace catena::functions {
namespace {

struct Cumsum {
  static constexpr const char* kName = "Cumsum";
  int axis;
  Array forward(const Array& x) const { return catena::cumsum(x, axis); }
  Array adjoint(const Array& gy) const {
    return catena::flip(catena::cumsum(catena::flip(gy, axis), axis), axis);
  }
};

}  // namespace

Variable cumsum(const VariableOperand& operand, OptionalAxis axis) {
  FunctionCall call(Cumsum::kName, Autocast::kFloat32, operand);
  const Variable& x = call[0];
  check_axes(call, x.data(), axis ? Axes{*axis} : Axes{});
  if (!axis) return cumsum(reshape(x, {x.size()}), 0);
  return linear_map(call, Cumsum{normalize_axis(call.name(), *axis, x.ndim())});
}

}  // namespace catena::functions
