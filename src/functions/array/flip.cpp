// flip and roll: orders of elements, undone by their adjoints.
#include "catena/functions/array/flip.h"

#include "catena/array/manipulation.h"
#include "catena/autograd/linear_map.h"
#include "catena/functions/array/reshape.h"

namespace catena::functions {
namespace {

struct Flip {
  static constexpr const char* kName = "Flip";
  AxisList axes;
  Array forward(const Array& x) const { return catena::flip(x, axes); }
  Array adjoint(const Array& gy) const { return catena::flip(gy, axes); }
};

struct Roll {
  static constexpr const char* kName = "Roll";
  int64_t shift;
  int axis;
  Array forward(const Array& x) const { return catena::roll(x, shift, axis); }
  Array adjoint(const Array& gy) const { return catena::roll(gy, -shift, axis); }
};

}  // namespace

Variable flip(const VariableOperand& x, const AxisList& axes) {
  FunctionCall call(Flip::kName, Autocast::kNone, x);
  return linear_map(call, Flip{axes});
}

Variable roll(const VariableOperand& operand, int64_t shift, OptionalAxis axis) {
  FunctionCall call(Roll::kName, Autocast::kNone, operand);
  const Variable& x = call[0];
  if (!axis) return reshape(roll(reshape(x, {x.size()}), shift, 0), x.shape());
  const int a = normalize_axis(call.name(), *axis, x.ndim());
  // Any shift is one below the extent, whose negative there is as well.
  const int64_t extent = x.shape()[size_t(a)];
  return linear_map(call, Roll{extent > 0 ? shift % extent : 0, a});
}

}  // namespace catena::functions
