// prod: halves multiplied until one element is left.
#include "catena/functions/math/prod.h"

#include "catena/array/creation.h"
#include "catena/functions/array/concat.h"
#include "catena/functions/array/reshape.h"
#include "catena/functions/array/split_axis.h"
#include "catena/functions/array/transpose.h"
#include "functions/common/over_axes.h"

namespace catena::functions {
namespace {

// (rest, count) of x, the reduced axes last.
Variable as_rows(const Variable& x, const OverAxes& over) {
  Axes order;
  int64_t rest = 1;
  for (int i = 0; i < x.ndim(); ++i) {
    if (over.has(i)) continue;
    order.push_back(i);
    rest *= x.shape()[size_t(i)];
  }
  for (int i = 0; i < x.ndim(); ++i)
    if (over.has(i)) order.push_back(i);
  const Variable moved = x.ndim() > 0 ? transpose(x, order) : x;
  return reshape(moved, {rest, over.count()});
}

}  // namespace

Variable prod(const VariableOperand& operand, const ReduceAxes& axes, YesNo keepdims) {
  FunctionCall call("Prod", Autocast::kFloat32, operand);
  const OverAxes over(call, axes, keepdims);
  // In float64: a product of some elements may leave the range of float32 where that of all does
  // not.
  Variable y = as_rows(cast(call[0], Dtype::kFloat64), over);
  while (y.shape()[1] > 1) {
    if (y.shape()[1] % 2 == 1) {
      const Array one = ones({y.shape()[0], 1}, {y.dtype(), y.device()});
      y = concat({y, Variable::constant(one)}, 1);
    }
    const Variables halves = split_axis(y, 2, 1);
    y = halves[0] * halves[1];
  }
  if (y.shape()[1] == 0) y = sum(y, 1) + 1.0;
  return cast(reshape(y, over.result()), call[0].dtype());
}

}  // namespace catena::functions
