// Random numbers from Philox blocks: plain arguments. catena/kernels/random.h defines the numbers.
#pragma once

#include "backends/cuda/runtime/launch.h"

namespace catena {
struct RandomBits;
}  // namespace catena

namespace catena::gpu {

// Blocks from `offset` on under `seed`; with `base` from offset + base[1] on under base[0].
struct RandomSource {
  uint64_t seed, offset;
  const uint64_t* base;  // device memory, or null
};
// That of a call.
RandomSource source_of(const RandomBits& bits);

struct RandomArgs {
  RandomSource source;
  void* output;
  int64_t count;
  double low, high;
  int64_t integer_low;
  uint64_t range;
};

void launch_random_bits(const RandomArgs& args, const Launch& launch);
void launch_uniform(Float type, const RandomArgs& args, const Launch& launch);
void launch_normal(Float type, const RandomArgs& args, const Launch& launch);
void launch_bernoulli(const RandomArgs& args, const Launch& launch);
void launch_integers(int bytes, const RandomArgs& args, const Launch& launch);

struct DropoutArgs {
  RandomSource source;
  const void* x;
  void* y;
  int64_t count;
  double ratio, scale;
};
void launch_dropout(Float type, const DropoutArgs& args, const Launch& launch);

// Sorts 0 .. count-1 by 64 random bits of each; elements with equal bits stay in order.
struct PermutationArgs {
  RandomSource source;
  int64_t* output;
  int64_t count;
  uint64_t *keys, *sorted_keys;  // count each
  int64_t* values;               // count
  void* scratch;
  size_t scratch_bytes;
};
size_t permutation_scratch_bytes(int64_t count);
cudaError_t launch_permutation(const PermutationArgs& args, const Launch& launch);

}  // namespace catena::gpu
