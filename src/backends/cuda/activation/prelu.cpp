// Host glue of the gradients of prelu.
#include "backends/cuda/activation/prelu.h"

#include "backends/common/family.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/prelu.h"

namespace catena::gpu {
namespace {

bool prelu_grad(const PreluGradCall& call) {
  const auto& [x, gy, W, gx, gW] = call;
  PreluGradArgs args{x.raw_data(),  gy.raw_data(), W.raw_data(), gx.raw_data(),
                     gW.raw_data(), x.shape()[0],  x.shape()[1], x.shape()[2]};
  args.aligned = aligned16(args.x, args.gy, args.gx);
  const Launch launch = launch_for(x);
  args.parts = prelu_grad_parts(args, launch);
  if (args.parts == 0) return false;
  const size_t bytes = x.dtype() == Dtype::kFloat64 ? 8 : 4;
  // It may be released at once, because later users of the memory follow in the stream.
  const StoragePtr partials =
      allocate(x.device(), static_cast<size_t>(args.parts * args.channels) * bytes);
  args.partials = partials->data;
  launch_prelu_grad(float_code("prelu_grad", x.dtype()), args, launch);
  check_launch("prelu_grad");
  return true;
}

}  // namespace
}  // namespace catena::gpu

CATENA_FAMILY(cuda, prelu) {
  kernels::prelu_grad.provide(DeviceType::kCuda, "cuda", &gpu::prelu_grad);
}
