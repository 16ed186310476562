// diagonal and trace: a view whose adjoint puts the gradient among zeros.
#include "catena/functions/array/diagonal.h"

#include "catena/array/creation.h"
#include "catena/autograd/linear_map.h"
#include "catena/core/entry_scope.h"
#include "catena/functions/math/sum.h"
#include "functions/common/checks.h"

namespace catena::functions {
namespace {

struct Diagonal {
  static constexpr const char* kName = "Diagonal";
  Shape from;
  int64_t offset, axis1, axis2;
  Array forward(const Array& x) const { return x.diagonal(offset, axis1, axis2); }
  Array adjoint(const Array& gy) const {
    const Array gx = zeros(from, {gy.dtype(), gy.device()});
    gx.diagonal(offset, axis1, axis2).assign(gy);
    return gx;
  }
};

}  // namespace

Variable diagonal(const VariableOperand& x, int64_t offset, Axis axis1, Axis axis2) {
  const EntryScope entry(Diagonal::kName);
  FunctionCall call(Diagonal::kName, Autocast::kNone, x);
  return linear_map(call, Diagonal{call[0].shape(), offset, axis1, axis2});
}

Variable trace(const VariableOperand& x, int64_t offset, Axis axis1, Axis axis2) {
  const EntryScope entry("Trace");
  FunctionCall call("Trace", Autocast::kFloat32, x);
  const TypeOf in(call[0].data(), "x");
  Checks(call.named(), in).require_float(in);
  return sum(diagonal(call[0], offset, axis1, axis2), -1);
}

}  // namespace catena::functions
