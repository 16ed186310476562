// Host glue of the softmax slots.
#include "backends/cuda/softmax/softmax.h"

#include "backends/common/family.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/softmax.h"

namespace catena::gpu {
namespace {

SoftmaxArgs arguments(const Array& x, const Array& y, bool log) {
  SoftmaxArgs args{};
  args.x = x.raw_data();
  args.y = y.raw_data();
  args.outer = x.shape()[0];
  args.classes = x.shape()[1];
  args.inner = x.shape()[2];
  args.log = log;
  args.aligned = aligned16(args.x, args.y);
  return args;
}

void softmax(const SoftmaxCall& call) {
  const auto& [x, log, y] = call;
  if (x.size() == 0) return;
  launch_softmax(float_code("softmax", x.dtype()), arguments(x, y, log), launch_for(x));
  check_launch("softmax");
}

void softmax_grad(const SoftmaxGradCall& call) {
  const auto& [y, gy, log, gx] = call;
  if (y.size() == 0) return;
  SoftmaxArgs args = arguments(y, gx, log);
  args.gy = gy.raw_data();
  args.aligned = args.aligned && aligned16(args.gy);
  launch_softmax_grad(float_code("softmax_grad", y.dtype()), args, launch_for(y));
  check_launch("softmax_grad");
}

}  // namespace

}  // namespace catena::gpu

CATENA_FAMILY(cuda, softmax) {
  kernels::softmax.provide<&gpu::softmax>(DeviceType::kCuda, "cuda");
  kernels::softmax_grad.provide<&gpu::softmax_grad>(DeviceType::kCuda, "cuda");
}
