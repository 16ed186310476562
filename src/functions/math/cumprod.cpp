// cumprod: products of twice as many elements in each step.
#include "catena/functions/math/cumprod.h"

#include "catena/functions/array/concat.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/array/split_axis.h"
#include "functions/common/over_axes.h"

namespace catena::functions {

Variable cumprod(const VariableOperand& operand, OptionalAxis axis) {
  FunctionCall call("Cumprod", Autocast::kFloat32, operand);
  const Variable& x = call[0];
  check_axes(call, x.data(), axis ? Axes{*axis} : Axes{});
  if (!axis) return cumprod(reshape(x, {x.size()}), 0);
  const int a = normalize_axis(call.name(), *axis, x.ndim());
  const int64_t extent = x.shape()[size_t(a)];
  // y[i] is the product of the last `width` elements up to i, or of all there are.
  Variable y = summable(x);
  for (int64_t width = 1; width < extent; width *= 2) {
    const Variables done = split_axis(y, Axes{width}, a);
    const Variables before = split_axis(y, Axes{extent - width}, a);
    y = concat({done[0], done[1] * before[0]}, a);
  }
  return cast(y, x.dtype());
}

}  // namespace catena::functions
