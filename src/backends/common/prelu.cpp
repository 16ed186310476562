// The gradients of prelu as element-wise operations and a sum, for devices and layouts without a
// kernel of their own.
#include "catena/kernels/prelu.h"

#include "backends/common/family.h"
#include "catena/array/array.h"
#include "catena/array/elementwise.h"
#include "catena/array/reduction.h"
#include "catena/kernels/elementwise.h"

namespace catena {
namespace {

void prelu_grad(const PreluGradCall& call) {
  const auto& [x, gy, W, gx, gW] = call;
  const Array slopes = W.reshape({1, W.size(), 1});
  static const ElementwiseOp of_x = elementwise_op("leaky_relu_grad"),
                             of_slope = elementwise_op("leaky_relu_grad_slope");
  elementwise(of_x, {gy, x, slopes}, gx);
  gW.assign(sum(elementwise(of_slope, {gy, x}), {{0, 2}, false}));
}

}  // namespace
}  // namespace catena

CATENA_COMPOSED_FAMILY(prelu) { kernels::prelu_grad.provide<&prelu_grad>(type, "composed", -1); }
