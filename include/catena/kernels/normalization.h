// Batch normalization: forward with the statistics of the batch or with given ones, and backward.
#pragma once

#include <cstdint>

#include "catena/kernels/slot.h"

namespace catena {

class Array;

// How the elements of a batch lie in memory: densely, as (outer, channels, inner). Images with
// channels first are (n, c, height * width), with channels last (n * height * width, c, 1).
struct ChannelLayout {
  int64_t outer, channels, inner;
  // Elements of one channel.
  int64_t count() const { return outer * inner; }
};

// Below, "batch" arrays (x, y, residual and their gradients) are of one floating dtype and all laid
// out as `layout` says; the shape of the Array is not read. "Channel" arrays hold one number a
// channel, contiguous, in float64 if the batch is, else in float32. Sums of 16-bit and float32
// batches are made in float32 or wider; a mean far from zero does not spoil the variance. Nothing
// is empty. `gamma` null counts as 1, `beta` null as 0. With relu a provider may keep where y is
// positive, so that its backward call need not read y.

struct BatchNormalizationGradCall;

// Normalization by the statistics of x (S. Ioffe and C. Szegedy, Batch Normalization, ICML 2015):
//   mean = sum x / m,  variance = sum (x - mean)^2 / m,  inverse_deviation = 1 / sqrt(variance +
//   eps),  y = act((x - mean) * inverse_deviation * gamma + beta + residual)
// with m = layout.count() >= 2 and act = relu on request. The mean is computed to twice the
// precision of a channel array, as mean + mean_rest: x - mean keeps its digits where the mean is
// far above the deviation, which the mean rounded to one number would take from it. Then, where
// there are running statistics,
//   running_mean = decay * running_mean + (1 - decay) * mean
// and likewise running_variance with the unbiased m / (m - 1) * variance. With `updates`, a 0-d
// int64 on the device of at least 1, decay is 1 - 1 / updates: the running statistics are the means
// over that many batches.
struct BatchNormalizationCall {
  ChannelLayout layout;
  const Array* x;
  const Array* gamma;
  const Array* beta;
  const Array* residual;  // batch; may be null
  double eps;
  bool relu;
  const Array* y;                  // may be x or residual
  const Array* mean;               // channel, written
  const Array* inverse_deviation;  // channel, written
  const Array* running_mean = nullptr;
  const Array* running_variance = nullptr;  // null if and only if running_mean is
  double decay = 0;
  const Array* updates = nullptr;
  Kept<BatchNormalizationGradCall>* kept = nullptr;
  const Array* mean_rest = nullptr;  // channel, written; null: not wanted
};

// The same y with given statistics.
struct FixedBatchNormalizationCall {
  ChannelLayout layout;
  const Array* x;
  const Array* gamma;
  const Array* beta;
  const Array* residual;
  const Array* mean;
  const Array* variance;
  double eps;
  bool relu;
  const Array* y;
  Kept<BatchNormalizationGradCall>* kept = nullptr;
};

// Gradients of both. With g = gy where y > 0 (everywhere without y), and xhat = (x - mean) *
// inverse_deviation:
// (the mean being mean + mean_rest),
//   g_beta (+)= sum g,  g_gamma (+)= sum g * xhat,  g_residual = g,
//   gx = gamma * inverse_deviation * (g - (sum g + xhat * sum g * xhat) / m),
// and without the sums in gx where the statistics were given (`fixed`).
struct BatchNormalizationGradCall {
  ChannelLayout layout;
  const Array* x;
  const Array* gy;
  const Array* y;  // the result of the forward call; null unless it took the relu
  const Array* gamma;
  const Array* mean;
  const Array* inverse_deviation;
  bool fixed;
  const Array* gx;          // batch; null: not wanted
  const Array* g_residual;  // batch; null: not wanted; not without gx
  const Array* g_gamma;     // channel; null: not wanted
  const Array* g_beta;      // channel; null: not wanted
  bool accumulate_gamma = false, accumulate_beta = false;
  const Kept<BatchNormalizationGradCall>* kept = nullptr;  // of the forward call
  // Without a residual a provider may compute where y is positive once more, from x, gamma and
  // beta.
  bool y_follows_from_x = false;
  const Array* beta = nullptr;       // of the forward call; read only if y_follows_from_x
  const Array* mean_rest = nullptr;  // of the forward call; null counts as 0
};

namespace kernels {

// The slots of the calls above.
extern Slot<BatchNormalizationCall> batch_normalization;
extern Slot<FixedBatchNormalizationCall> fixed_batch_normalization;
extern Slot<BatchNormalizationGradCall> batch_normalization_grad;

}  // namespace kernels

}  // namespace catena
