// norm: sums of powers, with a gradient at 0.
#include "catena/functions/math/norm.h"

#include <cmath>

#include "catena/functions/array/reshape.h"
#include "functions/common/over_axes.h"

namespace catena::functions {
namespace {

// A root of sums of powers, where they are not 0.
Variable root(const Variable& powers, double p) {
  const Array some = not_equal(powers.data(), 0.0);
  const Variable safe = where(some, powers, 1.0);
  return where(some, p == 2 ? sqrt(safe) : power(safe, 1 / p), 0.0);
}

// |x|^p with a gradient at 0.
Variable sizes_to_the(const Variable& x, double p) {
  const Array some = not_equal(x.data(), 0.0);
  return where(some, power(where(some, absolute(x), 1.0), p), 0.0);
}

}  // namespace

Variable norm(const VariableOperand& operand, const ReduceAxes& axes, YesNo keepdims, double p) {
  FunctionCall call("Norm", Autocast::kFloat32, operand);
  const OverAxes over(call, axes, keepdims);
  CATENA_CHECK(ValueError, p >= 1, call.label(), ": expected a p of at least 1, got ", p);
  const Variable x = summable(call[0]);
  Variable y;
  if (p == 1)
    y = sum(absolute(x), over.keeping());
  else if (std::isinf(p))
    y = max(absolute(x), over.keeping());
  else if (p == 2)
    y = root(sum(square(x), over.keeping()), p);
  else
    y = root(sum(sizes_to_the(x, p), over.keeping()), p);
  return cast(reshape(y, over.result()), call[0].dtype());
}

}  // namespace catena::functions
