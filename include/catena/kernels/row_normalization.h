// Normalization of rows: layer, group, instance and root-mean-square normalization, forward and
// gradient.
#pragma once

#include <cstdint>

#include "catena/kernels/slot.h"

namespace catena {

class Array;

// What is normalized together. In memory the batch is dense, (samples, positions, channels, inner),
// where positions or inner is 1. The channels of a sample are split into `groups` equal groups, and
// a row is a group of a sample: channels / groups * positions * inner numbers. Layer normalization
// over `size` numbers is (rows, 1, size, 1) with one group; images with channels first are
// (n, 1, c, height * width), with channels last (n, height * width, c, 1).
struct RowLayout {
  int64_t samples, positions, channels, inner, groups;
  int64_t rows() const { return samples * groups; }
  int64_t size() const { return channels / groups * positions * inner; }
};

// Below, x, y, gy and gx are of one floating dtype, laid out as `layout` says, and not empty; the
// shape of the Array is not read. `statistics` are float64 where x is, else float32. gamma, beta
// and their gradients have a number for each channel, contiguous, of the dtype of x or of that of
// the statistics, each for itself. gamma null counts as 1, beta null as 0. Sums are made in float32
// or wider, and gradients rounded once.

// y = (x - mean) * inverse_deviation * gamma + beta with the mean of the row and
// inverse_deviation = 1 / sqrt(variance + eps), the variance being the mean of (x - mean)^2
// (J. Ba, J. Kiros and G. Hinton, Layer Normalization, 2016; Y. Wu and K. He, Group Normalization,
// ECCV 2018). The mean is computed to twice the precision of its dtype, as mean + mean_rest, so
// that x - mean keeps its digits where the mean is far above the deviation. Not `centred`: the mean
// counts as 0 (B. Zhang and R. Sennrich, Root Mean Square Layer Normalization, NeurIPS 2019).
// `statistics` is contiguous and gets the inverse deviations of all rows, where centred then their
// means and then their mean_rests.
// With a residual, like x, what is normalized is not x but x + residual, rounded to the dtype of x
// and written to `sum`, which is not in the memory of x or residual. Calls with one have rows of
// plain channels: positions, inner and groups are 1.
struct RowNormalizationCall {
  RowLayout layout;
  const Array* x;
  const Array* gamma;
  const Array* beta;
  double eps;
  bool centred;
  const Array* y;           // may be x
  const Array* statistics;  // written
  const Array* residual = nullptr;
  const Array* sum = nullptr;  // written; null without a residual
};

// With xhat = (x - mean) * inverse_deviation and h = gamma * gy,
//   g_gamma (+)= sum gy * xhat,  g_beta (+)= sum gy, over all numbers of the channel,
//   gx = inverse_deviation * (h - mean of h - xhat * mean of h * xhat), over the row,
// and without the mean of h unless `centred`. gx of a call whose x is a sum, see above, also gets
// gsum, like x: it is added before gx is rounded. Only where gx is wanted.
struct RowNormalizationGradCall {
  RowLayout layout;
  const Array* x;
  const Array* gy;
  const Array* gamma;
  const Array* statistics;  // of the forward call
  bool centred;
  const Array* gx;       // null: not wanted
  const Array* g_gamma;  // null: not wanted
  const Array* g_beta;   // null: not wanted
  bool accumulate_gamma = false, accumulate_beta = false;
  const Array* gsum = nullptr;
};

namespace kernels {

// The slots of the calls above.
extern Slot<RowNormalizationCall> row_normalization;
extern Slot<RowNormalizationGradCall> row_normalization_grad;

}  // namespace kernels

}  // namespace catena
