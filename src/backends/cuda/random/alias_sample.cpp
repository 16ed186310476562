// Host glue of the alias_sample slot.
#include "backends/cuda/random/alias_sample.h"
#include "backends/common/family.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/sampling.h"

namespace catena::gpu {
namespace {

void alias_sample(const AliasSampleCall& call) {
  const auto& [bits, threshold, values, output] = call;
  AliasSampleArgs args{};
  args.source = source_of(bits);
  args.threshold = threshold.data<float>();
  args.values = values.data<int32_t>();
  args.slots = static_cast<uint64_t>(threshold.size());
  args.output = output.data<int32_t>();
  args.count = output.size();
  launch_alias_sample(args, launch_for(output));
  check_launch("alias_sample");
}

}  // namespace

}  // namespace catena::gpu

CATENA_FAMILY(cuda, alias_sample) {
  kernels::alias_sample.provide<&gpu::alias_sample>(DeviceType::kCuda, "cuda");
}
