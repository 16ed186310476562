// Batch normalization by the statistics of all ranks: a layer, and models whose layers become such.
#pragma once

#include <cstdint>
#include <utility>

#include "catena/autograd/function_set.h"
#include "catena/comm/communicator.h"
#include "catena/functions/normalization/batch_normalization.h"

namespace catena::parallel {

// What the loss of the job is, as gradients depend on it: y of one rank moves with the x of others.
enum class LossOverRanks : uint8_t {
  // The mean over the samples of all ranks. Each rank's loss is the mean over its samples, and the
  // optimizer weighs ranks by them (set_batch_weight, training::make_step).
  kMeanOverSamples,
  // The sum of the ranks' losses, or their mean with equal weights.
  kSum,
};

// BatchNormalization by the mean and the variance of the batches of all ranks together (Chainer's
// MultiNodeBatchNormalization). In train state all ranks call it in the same order and run the
// backward passes through it alike. Batches may differ in size; a rank without samples calls it
// with an x of shape (0, channels, ...), see training::EmptyBatches. In test state it is an
// ordinary layer.
//
// Results, gradients and averages are those of one process with the whole batch, up to rounding.
// Ranks exchange mean, sum of squared deviations and count of each channel in one message of the
// forward pass, joined in float64 (Chan et al.), and two sums a channel in one of the backward
// pass: digits do not suffer where the mean is far above the deviation. The averages have the same
// bits on all ranks. On GPUs all of this is queued on the current stream and may be captured. The
// second order is there as for the plain layer.
//
// x must be on the communicator's device (DeviceError). With a null communicator, or one rank, the
// layer computes what the plain one does. Copies share the communicator, which they keep alive.
// Ranks with other channels or dtypes are named in a CommError. Of fewer than two values a channel
// on all ranks together: ValueError on CPUs, NaN on GPUs.
class SyncBatchNormalization : public functions::BatchNormalization {
 public:
  // As of BatchNormalization.
  SyncBatchNormalization(int64_t size, const CommunicatorPtr& comm,
                         const functions::BatchNormalizationOptions& options = {},
                         LossOverRanks loss = LossOverRanks::kMeanOverSamples);
  SyncBatchNormalization(const Shape& size, const CommunicatorPtr& comm,
                         const functions::BatchNormalizationOptions& options = {},
                         LossOverRanks loss = LossOverRanks::kMeanOverSamples);
};

// ChainerMN's name.
using MultiNodeBatchNormalization = SyncBatchNormalization;

// Makes every BatchNormalization of the model, which may be one itself, normalize by the statistics
// of all ranks, and returns how many there are. Parameters and averages keep their values. Call it
// before an optimizer or a checkpoint takes the model. A null communicator makes them plain again.
int64_t synchronize_normalization(Parameterized& model, const CommunicatorPtr& comm,
                                  LossOverRanks loss = LossOverRanks::kMeanOverSamples);

// A copy of the model with such layers (ChainerMN's create_mnbn_model).
template <class Model>
Model create_mnbn_model(const Model& model, const CommunicatorPtr& comm,
                        LossOverRanks loss = LossOverRanks::kMeanOverSamples) {
  Model copy(model);
  synchronize_normalization(copy, comm, loss);
  return copy;
}

}  // namespace catena::parallel
