#include "functions/common/activation_grad.h"

#include "functions/common/gradient_target.h"
#include "functions/common/support.h"

namespace catena::functions {

void give_activation_grad(BackwardContext& context, LinearActivation function, const Array& gy,
                          const Array& kept, const Array& gx, int bias) {
  const Shape columns{gx.shape()[1]};
  if (gx.size() == 0) {
    if (wants(context, bias)) give_sum(context, bias, gx, columns);
    return;
  }
  const GradientTarget sums =
      gradient_target(context, bias, columns, gx.dtype(), gx.device(), false);
  kernels::linear_activation_grad(gx.device(),
                                  {function, &gy, &kept, &gx, sums.pointer(), sums.accumulate});
  sums.give(context, bias);
}

}  // namespace catena::functions
