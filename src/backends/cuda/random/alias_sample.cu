// Draws by Walker's alias method: a thread draws the two elements of a block of bits.
#include "backends/cuda/random/alias_sample.h"

#include "backends/cuda/common/early_launch.cuh"
#include "backends/cuda/common/philox_source.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) alias_sample_kernel(AliasSampleArgs args) {
  wait_for_previous_kernel();
  for_blocks(args.source, (args.count + 1) / 2, [&](int64_t i, const philox::Block& block) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t at = 2 * i + half;
      if (at >= args.count) break;
      const uint64_t bits = philox::bits64(block, half);
      const uint64_t slot = philox::scaled(bits, args.slots);
      const double u = philox::unit53(bits * args.slots);
      args.output[at] = args.values[2 * slot + (u < double(args.threshold[slot]) ? 0 : 1)];
    }
  });
}

}  // namespace

void launch_alias_sample(const AliasSampleArgs& args, const Launch& launch) {
  const unsigned blocks = loop_blocks((args.count + 1) / 2, kThreads, launch);
  launch_kernel<alias_sample_kernel>(blocks, kThreads, launch, args);
}

}  // namespace catena::gpu
