// Host glue of the slots of local response normalization.
#include "backends/cuda/normalization/local_response.h"

#include <algorithm>

#include "backends/common/family.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/local_response.h"

namespace catena::gpu {
namespace {

template <class Call>
LocalResponseArgs arguments(const Call& call) {
  LocalResponseArgs args{};
  args.outer = call.layout.outer;
  args.channels = call.layout.channels;
  args.inner = call.layout.inner;
  args.x = call.x->raw_data();
  args.half = std::min(call.rule.n / 2, args.channels - 1);
  args.k = call.rule.k;
  args.alpha = call.rule.alpha;
  args.beta = call.rule.beta;
  return args;
}

void local_response(const LocalResponseCall& call) {
  LocalResponseArgs args = arguments(call);
  args.y = call.y->raw_data();
  launch_local_response(float_code("local_response", call.x->dtype()), args, launch_for(*call.x));
  check_launch("local_response");
}

void local_response_grad(const LocalResponseGradCall& call) {
  LocalResponseArgs args = arguments(call);
  args.gy = call.gy->raw_data();
  args.y = call.gx->raw_data();
  const Launch launch = launch_for(*call.x);
  Array scale;
  if (local_response_needs_scale(args.half)) {
    scale = scratch_for(*call.x, call.layout.count() * call.layout.channels);
    args.scale = scale.raw_data();
  }
  launch_local_response_grad(float_code("local_response_grad", call.x->dtype()), args, launch);
  check_launch("local_response_grad");
}

}  // namespace
}  // namespace catena::gpu

CATENA_FAMILY(cuda, local_response) {
  kernels::local_response.provide<&gpu::local_response>(DeviceType::kCuda, "cuda");
  kernels::local_response_grad.provide<&gpu::local_response_grad>(DeviceType::kCuda, "cuda");
}
