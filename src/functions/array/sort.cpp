// sort: a permutation of each line, which its inverse undoes.
#include "catena/functions/array/sort.h"

#include "array/rows_along_axis.h"
#include "catena/autograd/linear_map.h"
#include "catena/functions/array/reshape.h"
#include "catena/kernels/sort.h"
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
    if (gx.size() > 0)
      index_put(gx, std::span<const AnyIndex>(along_axis(gx.shape(), order, axis)), gy,
                OutOfRange::kClip);  // a check would wait for a GPU
    return gx;
  }
};

enum class Wanted : uint8_t { kValues, kPositions };

// The lines of x in ascending order, or the positions that the elements had in them, int64.
Array sorted(const Array& x, int axis, Wanted wanted) {
  const bool positions = wanted == Wanted::kPositions;
  const RowsAlongAxis rows(x, axis);
  const Array to = rows.make(rows.extent(), positions ? Dtype::kInt64 : x.dtype());
  if (to.size() > 0)
    kernels::sort(x.device(),
                  {&rows.input(), false, positions ? nullptr : &to, positions ? &to : nullptr});
  return rows.restore(to);
}

}  // namespace

Variable sort(const VariableOperand& operand, OptionalAxis axis) {
  FunctionCall call(Permutation::kName, Autocast::kNone, operand);
  const Variable& x = call[0];
  if (!axis) return sort(reshape(x, {x.size()}), 0);
  const TypeOf in(x.data(), "x");
  require_axis(call, in, *axis);
  const int a = normalize_axis(call.name(), *axis, x.ndim());
  if (!call.is_recorded()) return call.unrecorded(sorted(x.data(), a, Wanted::kValues));
  return linear_map(call, Permutation{sorted(x.data(), a, Wanted::kPositions), a});
}

}  // namespace catena::functions
