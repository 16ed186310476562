// Draws by Walker's alias method: plain arguments.
#pragma once

#include "backends/cuda/random/random.h"

namespace catena::gpu {

struct AliasSampleArgs {
  RandomSource source;
  const float* threshold;  // `slots` numbers
  const int32_t* values;   // twice as many
  uint64_t slots;
  int32_t* output;
  int64_t count;
};
void launch_alias_sample(const AliasSampleArgs& args, const Launch& launch);

}  // namespace catena::gpu
