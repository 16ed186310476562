// Softmax cross entropy whose gradient replaces the scores: plain arguments.
#pragma once

#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

// See CrossEntropyInPlaceCall. Null pointers stand for what is not there.
struct InPlaceArgs {
  void* x;  // (outer, classes, inner), storage type
  const int32_t* t;
  int64_t outer, classes, inner, labels;
  int32_t ignore_label;
  bool normalize;
  bool aligned;  // x is aligned to 16 bytes
  void* losses;  // compute type, as all below but loss and gloss
  void* loss;    // storage type
  void* divisor;
  void* counted;      // labels not ignored; null: nobody asks
  const void* gloss;  // storage type
  const void* weights;
  const void* spread;
  const void* total;
  const void* factors;
  double z_loss;
  bool losses_only;
};

// Sets the divisor.
void launch_count_labels(Float type, const InPlaceArgs& args, const Launch& launch);
// Sets losses and the gradient. shared_memory: bytes that a block may opt into.
void launch_cross_entropy_in_place(Float type, const InPlaceArgs& args, int shared_memory,
                                   const Launch& launch);
// Sets the loss.
void launch_sum_losses(Float type, const InPlaceArgs& args, const Launch& launch);

// See ScaleSamplesCall; all of storage type.
struct ScaleSamplesArgs {
  void* x;
  int64_t outer, classes, inner;
  const void* factors;
  bool single;  // factors is one number
  bool aligned;
  const void* expected;
};
void launch_scale_samples(Float type, const ScaleSamplesArgs& args, const Launch& launch);

}  // namespace catena::gpu
