// Connectionist temporal classification: plain arguments.
#pragma once

#include "backends/cuda/loss/grid_sum.h"
#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

// See CtcCall. C is the compute type.
struct CtcArgs {
  const void* x;
  const int32_t* t;
  const int32_t* input_lengths;                      // or null
  const int32_t* label_lengths;                      // or null
  int64_t steps, batch, classes, labels, positions;  // positions: 2 labels + 1
  int32_t blank;
  double factor;
  void *norms, *alpha, *losses;  // of C
  void* loss;
  bool one_each;  // loss and gloss have an element for each sample
  // Forward only, where the loss is a sum over several blocks.
  GridSum scratch;
  // Gradient only.
  const void* gloss;
  void* gx;
  // Of C, (batch, 4, positions), and (batch, labels).
  void* rows;
  int32_t* next;
};

// One block a sample, up to a limit.
int ctc_blocks(const CtcArgs& args);
void launch_ctc(Float type, const CtcArgs& args, int blocks, const Launch& launch);
void launch_ctc_grad(Float type, const CtcArgs& args, const Launch& launch);

}  // namespace catena::gpu
