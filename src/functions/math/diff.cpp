// diff: a linear map whose adjoint takes differences, too.
#include "catena/functions/math/diff.h"

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/array/scan.h"
#include "catena/autograd/linear_map.h"
#include "functions/common/axes.h"

namespace catena::functions {
namespace {

struct Diff {
  static constexpr const char* kName = "Diff";
  Shape from;
  int64_t n;
  int axis;
  Array forward(const Array& x) const { return catena::diff(x, n, axis); }
  // gx[i] = gy[i-1] - gy[i], with zeros outside of gy.
  Array adjoint(const Array& gy) const {
    if (gy.size() == 0) return zeros(from, {gy.dtype(), gy.device()});
    Array gx = gy;
    for (int64_t i = 0; i < n; ++i) gx = catena::diff(gx, 1, axis, 0, 0);
    return n % 2 == 1 ? catena::negative(gx) : gx;
  }
};

}  // namespace

Variable diff(const VariableOperand& operand, int64_t n, Axis axis) {
  FunctionCall call(Diff::kName, Autocast::kNone, operand);
  const Variable& x = call[0];
  check_axes(call, x.data(), {axis});
  CATENA_CHECK(ValueError, n >= 0, call.label(), ": expected n of at least 0, got ", n);
  return linear_map(call, Diff{x.shape(), n, normalize_axis(call.name(), axis, x.ndim())});
}

}  // namespace catena::functions
