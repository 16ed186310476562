// flip, flipud, fliplr and roll: orders of elements, undone by their adjoints.
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

struct Flipud : Flip {
  static constexpr const char* kName = "Flipud";
};

struct Fliplr : Flip {
  static constexpr const char* kName = "Fliplr";
};

struct Roll {
  static constexpr const char* kName = "Roll";
  int64_t shift;
  int axis;
  Array forward(const Array& x) const { return catena::roll(x, shift, axis); }
  Array adjoint(const Array& gy) const { return catena::roll(gy, -shift, axis); }
};

// Flip by its subclass along one axis, which x must have.
template <class Map>
Variable flip_axis(const VariableOperand& x, int axis) {
  FunctionCall call(Map::kName, Autocast::kNone, x);
  CATENA_CHECK(ShapeError, call[0].ndim() > axis, call.label(), ": expected at least ", axis + 1,
               axis == 0 ? " axis" : " axes", ", got ", call[0].shape());
  return linear_map(call, Map{{AxisList(axis)}});
}

}  // namespace

Variable flipud(const VariableOperand& x) { return flip_axis<Flipud>(x, 0); }
Variable fliplr(const VariableOperand& x) { return flip_axis<Fliplr>(x, 1); }

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
