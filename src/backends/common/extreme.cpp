// The gradient of extremes as element-wise operations, for devices without a kernel of their own.
#include "catena/kernels/extreme.h"

#include "backends/common/family.h"
#include "catena/array/array.h"
#include "catena/array/elementwise.h"
#include "catena/kernels/elementwise_ops.h"

namespace catena {
namespace {

void extreme_grad(const ExtremeGradCall& call) {
  const auto& [x, y, gy, gx] = call;
  const Shape kept{x.shape()[0], 1, x.shape()[2]};
  elementwise(ops::where, {elementwise(ops::equal, {x, y.reshape(kept)}), gy.reshape(kept), 0.0},
              gx);
}

}  // namespace
}  // namespace catena

CATENA_COMPOSED_FAMILY(extreme) {
  kernels::extreme_grad.provide<&extreme_grad>(type, "composed", -1);
}
