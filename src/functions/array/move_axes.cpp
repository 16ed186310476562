// moveaxis, rollaxis and rot90: views that the same functions undo.
#include "catena/functions/array/move_axes.h"

#include "catena/array/manipulation.h"
#include "catena/autograd/linear_map.h"
#include "catena/core/entry_scope.h"

namespace catena::functions {
namespace {

struct Moveaxis {
  static constexpr const char* kName = "Moveaxis";
  AxisList sources, destinations;
  Array forward(const Array& x) const { return catena::moveaxis(x, sources, destinations); }
  Array adjoint(const Array& gy) const { return catena::moveaxis(gy, destinations, sources); }
};

struct Rollaxis : Moveaxis {
  static constexpr const char* kName = "Rollaxis";
};

struct Rot90 {
  static constexpr const char* kName = "Rot90";
  int64_t turns;  // 0 to 3
  Axes axes;
  Array forward(const Array& x) const { return catena::rot90(x, turns, axes); }
  Array adjoint(const Array& gy) const { return catena::rot90(gy, 4 - turns, axes); }
};

}  // namespace

Variable moveaxis(const VariableOperand& x, const AxisList& sources, const AxisList& destinations) {
  const EntryScope entry(Moveaxis::kName);
  FunctionCall call(Moveaxis::kName, Autocast::kNone, x);
  return linear_map(call, Moveaxis{sources, destinations});
}

Variable rollaxis(const VariableOperand& x, Axis axis, int64_t start) {
  const EntryScope entry(Rollaxis::kName);
  FunctionCall call(Rollaxis::kName, Autocast::kNone, x);
  const int n = call[0].ndim(), from = normalize_axis(axis, n);
  CATENA_CHECK(IndexError, start >= -n && start <= n, "start ", start, " is out of range for ", n,
               " axes; expected ", -n, " to ", n);
  const int64_t before = start < 0 ? start + n : start;
  return linear_map(call, Rollaxis{{from, before > from ? before - 1 : before}});
}

Variable rot90(const VariableOperand& x, int64_t times, const Axes& axes) {
  const EntryScope entry(Rot90::kName);
  FunctionCall call(Rot90::kName, Autocast::kNone, x);
  return linear_map(call, Rot90{(times % 4 + 4) % 4, axes});
}

}  // namespace catena::functions
