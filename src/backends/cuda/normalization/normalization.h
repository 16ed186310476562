// Batch normalization: plain arguments. Names as in catena/kernels/normalization.h.
#pragma once

#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

// A mask says where y is positive, in the order of memory: bit i of a byte is its element i. A byte
// has as many elements as normalization_walk() says of the pass that writes or reads the mask.

// kMomentsCountUnit of catena/kernels/normalization.h.
constexpr int64_t kMomentsUnit = int64_t(1) << 20;

// Where the backward pass finds where y is positive: no relu; in a mask; computed from x once more.
enum class Relu : uint8_t { kNone, kMask, kFromX };

// Channel arrays and scratch are of the compute type: double for doubles, else float.
struct NormalizationArgs {
  int64_t outer, channels, inner;
  bool aligned;  // all batch addresses are multiples of 16
  const void* x;
  const void* gamma;  // may be null
  const void* beta;   // may be null
  const void* residual;
  void* y;
  void* mean;
  void* mean_rest;          // what rounding takes off the mean; null of given statistics
  void* moments;            // written instead of all statistics; null: not wanted
  void* inverse_deviation;  // null: computed from `variance`
  const void* variance;     // given statistics
  double eps;
  bool relu;
  uint8_t* mask;       // written; null: not wanted
  void* running_mean;  // null: not wanted
  void* running_variance;
  double decay;
  const int64_t* updates;
  int splits;      // parts of a channel's statistics
  void* partials;  // as many numbers as normalization_walk() says
};

struct NormalizationGradArgs {
  int64_t outer, channels, inner;
  bool aligned;
  const void* x;
  const void* gy;
  Relu relu;
  const uint8_t* mask;  // kMask
  const void* gamma;    // may be null
  const void* beta;     // kFromX; may be null
  const void* mean;
  const void* mean_rest;  // may be null
  const void* inverse_deviation;
  bool fixed;
  void* gx;
  void* g_residual;  // null: not wanted
  void* g_gamma;     // null: not wanted
  void* g_beta;      // null: not wanted
  bool accumulate_gamma, accumulate_beta;
  int splits;
  void* partials;
  void* sums;          // 2 * channels numbers: sums of g and of g * (x - mean); may be null
  double sums_weight;  // they are stored times this
  const void* count;   // given sums are over count * sums_weight numbers; null: outer * inner
};

// Channel arrays are of the compute type; see MergeMomentsCall.
struct MergeMomentsArgs {
  int64_t parts, channels;
  const void* moments;
  double eps;
  void* mean;
  void* mean_rest;
  void* inverse_deviation;
  void* count;
  void* running_mean;  // null: not wanted
  void* running_variance;
  double decay;
  const int64_t* updates;
};

// How a batch is walked over.
struct NormalizationWalk {
  int splits;         // parts that a channel's statistics should be made in
  int64_t partials;   // numbers for the results of the parts
  int mask_elements;  // of a byte: 1, 2, 4 or 8
};
NormalizationWalk normalization_walk(Float type, int64_t outer, int64_t channels, int64_t inner,
                                     bool aligned, const Launch& launch);

// Computes mean, inverse_deviation and the running statistics from x, or `moments`.
void launch_normalization_statistics(Float type, const NormalizationArgs& args,
                                     const Launch& launch);
// Computes y with the statistics of `args`, which the kernel before it may have made.
void launch_normalization_apply(Float type, const NormalizationArgs& args, const Launch& launch);
// Computes sums, g_gamma and g_beta.
void launch_normalization_sums(Float type, const NormalizationGradArgs& args, const Launch& launch);
// Computes gx and g_residual, using `sums` unless the statistics were given.
void launch_normalization_gradient(Float type, const NormalizationGradArgs& args,
                                   const Launch& launch);

// Joins the moments of parts. `type` is that of the channel arrays.
void launch_merge_moments(Float type, const MergeMomentsArgs& args, const Launch& launch);

// Makes a mask from y, of `size` elements, with `elements` of them in a byte.
void launch_normalization_mask(Float type, const void* y, int64_t size, uint8_t* mask, int elements,
                               const Launch& launch);

}  // namespace catena::gpu
