// sort: a permutation of each line, which its inverse undoes.
#include "catena/functions/array/sort.h"

#include "catena/array/along_axis.h"
#include "catena/array/sorting.h"
#include "catena/autograd/linear_map.h"
#include "catena/functions/array/reshape.h"
#include "functions/common/along_axis.h"
#include "functions/common/axes.h"

namespace catena::functions {
namespace {

// y[i] = x[order[i]] along the axis. No two elements come from one place, so the adjoint writes.
struct Permutation {
  static constexpr const char* kName = "Sort";
  Array order;  // int64, of the shape of x
  int axis;
  Array forward(const Array& x) const { return pick_along_axis(x, order, axis); }
  Array adjoint(const Array& gy) const {
    const Array gx = Array::uninitialized(gy.shape(), gy.dtype(), gy.device());
    put_along_axis(gx, order, gy, axis, OutOfRange::kClip);  // a check would wait for a GPU
    return gx;
  }
};

}  // namespace

Variable sort(const VariableOperand& operand, OptionalAxis axis) {
  FunctionCall call(Permutation::kName, Autocast::kNone, operand);
  const Variable& x = call[0];
  if (!axis) return sort(reshape(x, {x.size()}), 0);
  const TypeOf in(x.data(), "x");
  require_axis(call, in, *axis);
  const int a = normalize_axis(call.name(), *axis, x.ndim());
  if (!call.is_recorded()) return call.unrecorded(catena::sort(x.data(), a));
  return linear_map(call, Permutation{catena::argsort(x.data(), a), a});
}

}  // namespace catena::functions
