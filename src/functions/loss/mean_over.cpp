// mean_over, of one element-wise division.
#include "catena/functions/loss/mean_over.h"

#include "catena/array/indexing.h"
#include "catena/array/logic.h"
#include "catena/autograd/mean.h"
#include "catena/functions/math/elementwise.h"
#include "functions/common/support.h"

namespace catena::functions {

Variable mean_over(const VariableOperand& sum_operand, const Array& counted, double expected) {
  const Variable count = Variable::constant(counted);
  FunctionCall call("MeanOver", Autocast::kNone, sum_operand, count);
  const Variable& sum = call[0];
  CATENA_CHECK(ShapeError, sum.size() == 1 && counted.size() == 1, call.label(),
               ": expected a sum and a count of one element each, got shapes ", sum.shape(),
               " and ", counted.shape(), "; reduce them with sum()");
  const TypeOf total(sum.data(), "sum");
  Checks(call.named(), total).require_float(total);
  call.require_one_device();
  const Array divisor = counted.astype(compute_dtype(sum.dtype()), true).reshape(Shape{});
  const Array some = greater(divisor, 0.0);
  const Variable mean =
      where(some, sum / catena::where(some, divisor, 1.0).astype(sum.dtype(), false), 0.0);
  declare_mean(mean, {divisor, expected});
  return mean;
}

}  // namespace catena::functions
