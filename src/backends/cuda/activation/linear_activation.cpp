// Host glue of the gradients through activations of linear layers.
#include "backends/cuda/activation/linear_activation.h"

#include "backends/common/family.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/linear.h"

namespace catena::gpu {
namespace {

void linear_activation_grad(const LinearActivationGradCall& call) {
  const Array& gx = *call.gx;
  const Launch launch = launch_for(gx);
  ActivationGradArgs args{};
  args.rows = gx.shape()[0], args.columns = gx.shape()[1];
  args.gy = call.gy->raw_data(), args.kept = call.kept->raw_data(), args.gx = gx.raw_data();
  args.sums = data_of(call.sums), args.accumulate = call.accumulate;
  args.wide_sums = call.sums != nullptr && call.sums->dtype() != gx.dtype();
  args.packed = args.columns * gx.itemsize() % 16 == 0 && aligned16(args.gy, args.kept, args.gx);
  plan_activation_grad(args, gx.itemsize(), launch);
  Array partials;
  if (call.sums != nullptr) {
    partials = scratch_for(gx, args.parts * args.columns);
    args.partials = partials.raw_data();
  }
  launch_activation_grad(float_code("linear_activation_grad", gx.dtype()), Activated(call.function),
                         args, launch);
  check_launch("linear_activation_grad");
}

}  // namespace
}  // namespace catena::gpu

CATENA_FAMILY(cuda, linear_activation) {
  kernels::linear_activation_grad.provide<&gpu::linear_activation_grad>(DeviceType::kCuda, "cuda");
}
