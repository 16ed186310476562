// separate: views of the parts.
#include "catena/functions/array/separate.h"

#include "catena/functions/array/reshape.h"
#include "catena/functions/array/split_axis.h"
#include "functions/common/axes.h"

namespace catena::functions {

Variables separate(const VariableOperand& operand, Axis axis) {
  FunctionCall call("Separate", Autocast::kNone, operand);
  const Variable& x = call[0];
  const TypeOf in(x.data(), "x");
  require_axis(call, in, axis);
  const int a = normalize_axis(call.name(), axis, x.ndim());
  const int64_t extent = x.shape()[size_t(a)];
  if (extent == 0) return {};
  Variables parts = split_axis(x, extent, a);
  for (Variable& part : parts) part = squeeze(part, a);
  return parts;
}

}  // namespace catena::functions
