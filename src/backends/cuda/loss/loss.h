// Softmax cross entropy, accuracy and label ranges: plain arguments.
#pragma once

#include "backends/cuda/loss/grid_sum.h"
#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

// The results of one block. The last block to finish sums them in order.
struct Tally {
  double sum;
  long long valid;
};

// Samples are the (outer, inner) positions of x (outer, classes, inner) and of t.
struct SampleArgs {
  const void* x;
  const int32_t* t;
  int64_t outer, classes, inner;
  bool has_ignore;
  int32_t ignore_label;
  GridSums<Tally> scratch;
};

struct CrossEntropyArgs {
  SampleArgs samples;
  bool normalize;
  void* lse;      // compute type; two numbers a sample, see catena/kernels/loss.h
  void* count;    // compute type
  void* counted;  // the same; null: nobody asks
  void* loss;     // storage type, or compute type
  // Gradient only.
  const void* gloss;  // storage type, or compute type
  void* gx;
  const void* factors;  // compute type; null: gloss / count for every sample
  const void* spread;   // compute type; null: factors has one part, not three
  bool wide_loss;       // loss or gloss is of compute type
  bool aligned;         // x, and for the gradient gx, are aligned to 16 bytes
};

// The number of blocks of a reduction over these samples; one block needs no scratch memory.
int sample_blocks(const SampleArgs& samples, const Launch& launch);

void launch_cross_entropy(Float type, const CrossEntropyArgs& args, int blocks,
                          const Launch& launch);
void launch_cross_entropy_grad(Float type, const CrossEntropyArgs& args, const Launch& launch);
// result: float32, or float64 when x is.
void launch_accuracy(Float type, const SampleArgs& args, void* result, int blocks,
                     const Launch& launch);

}  // namespace catena::gpu
