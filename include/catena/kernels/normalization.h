// Batch normalization: forward with the statistics of the batch or with given ones, and backward;
// and both in steps, between which ranks exchange statistics and sums.
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

// The same y with given statistics: the variance, or the results of batch_normalization or
// merge_moments. With the latter y has the bits that batch_normalization gives it, and its backward
// call may say y_follows_from_x.
struct FixedBatchNormalizationCall {
  ChannelLayout layout;
  const Array* x;
  const Array* gamma;
  const Array* beta;
  const Array* residual;
  const Array* mean;
  const Array* variance;  // null if and only if inverse_deviation is not
  double eps;
  bool relu;
  const Array* y;
  Kept<BatchNormalizationGradCall>* kept = nullptr;
  const Array* inverse_deviation = nullptr;
  const Array* mean_rest = nullptr;  // null counts as 0
};

// What is known of the numbers of a channel, so that parts of a batch can be joined: `moments` is
// contiguous and of the dtype of channel arrays, 3 * channels + 2 numbers: the means, their
// mean_rest, the sums of squared deviations, then the count of a channel's numbers as
// count / kMomentsCountUnit, rounded down, and count % kMomentsCountUnit.
struct BatchMomentsCall {
  ChannelLayout layout;
  const Array* x;
  const Array* moments;  // written
};
// A float holds counts below it exactly.
inline constexpr int64_t kMomentsCountUnit = int64_t(1) << 20;
// Numbers of `moments`.
inline constexpr int64_t moments_size(int64_t channels) { return 3 * channels + 2; }

// The statistics of all parts together (T. Chan, G. Golub and R. LeVeque, Updating formulae and a
// pairwise algorithm for computing sample variances, 1979), in order of the parts and in float64. A
// part with a count of 0 adds nothing. The results and the running statistics are those of
// batch_normalization for the whole batch. With fewer than two numbers in all they are NaN.
struct MergeMomentsCall {
  const Array* moments;  // contiguous, (parts, 3 * channels + 2)
  double eps;
  const Array* mean;               // channel, written
  const Array* mean_rest;          // channel, written
  const Array* inverse_deviation;  // channel, written
  const Array* count;              // (1) of the dtype of channel arrays, written: of all parts
  const Array* running_mean = nullptr;
  const Array* running_variance = nullptr;  // null if and only if running_mean is
  double decay = 0;
  const Array* updates = nullptr;
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

  // In two calls, between which sums of several ranks are added. The first one writes its sums, of
  // g and of g * (x - mean), times sums_weight to `sums` (2 * channels, contiguous, of the dtype of
  // channel arrays), and wants neither gx nor g_residual. The second one gets them as `given_sums`
  // and wants neither g_gamma nor g_beta; its m is given_count[0] * sums_weight. Both have the
  // statistics of all ranks, and `fixed` is false.
  const Array* sums = nullptr;
  const Array* given_sums = nullptr;
  const Array* given_count = nullptr;
  double sums_weight = 1;
};

namespace kernels {

// The slots of the calls above.
extern Slot<BatchNormalizationCall> batch_normalization;
extern Slot<FixedBatchNormalizationCall> fixed_batch_normalization;
extern Slot<BatchNormalizationGradCall> batch_normalization_grad;
extern Slot<BatchMomentsCall> batch_moments;
extern Slot<MergeMomentsCall> merge_moments;

}  // namespace kernels

}  // namespace catena
