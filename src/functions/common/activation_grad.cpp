#include "functions/common/activation_grad.h"

#include "functions/common/gradient_target.h"
#include "functions/common/support.h"

namespace catena::functions {
namespace {

// Where the sums of the columns go: the gradient of the bias, of a float32 one in float32.
GradientTarget sums_target(BackwardContext& context, int bias, const Array& gx) {
  const BackwardContext::Destination to = context.wide_destination(bias);
  if (to && to.array->is_contiguous() && sums_come_in(gx.dtype(), to.array->dtype()))
    return {*to.array, to.accumulate, true};
  return {Array::uninitialized({gx.shape()[1]}, gx.dtype(), gx.device())};
}

}  // namespace

void give_activation_grad(BackwardContext& context, LinearActivation function, const Array& gy,
                          const Array& kept, const Array& gx, int bias) {
  if (gx.size() == 0) {
    if (wants(context, bias)) give_sum(context, bias, gx, {gx.shape()[1]});
    return;
  }
  const GradientTarget sums =
      wants(context, bias) ? sums_target(context, bias, gx) : GradientTarget();
  kernels::linear_activation_grad(gx.device(),
                                  {function, &gy, &kept, &gx, sums.pointer(), sums.accumulate});
  sums.give(context, bias);
}

}  // namespace catena::functions
