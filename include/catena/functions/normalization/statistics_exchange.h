// StatisticsExchange: how the ranks of a job normalize by the statistics of all their batches.
#pragma once

#include <string>

#include "catena/array/array.h"

namespace catena::functions {

// What BatchNormalization::share_statistics takes. parallel::SyncBatchNormalization has one over a
// communicator; derive from it for another way. gather() is called once in each forward pass in
// train state, sum() once in each backward pass that reaches x, more often where the gradient
// itself is recorded; all ranks call them in the same order. Work on a GPU is queued on the current
// stream of the array's device.
class StatisticsExchange {
 public:
  virtual ~StatisticsExchange() = default;
  // With one rank the layer works alone and calls nothing of the exchange.
  virtual int ranks() const = 0;
  // DeviceError, beginning with `layer`, unless arrays of x's device can be exchanged.
  virtual void check(const Array& x, const std::string& layer) const = 0;
  // The vectors (n) of all ranks, as (ranks, n) in order of the ranks.
  virtual Array gather(const Array& x) const = 0;
  // Adds x over the ranks, in place; the same bits on all.
  virtual void sum(const Array& x) const = 0;
  // What the gradients of the ranks belong to. True: the loss of the job is the mean of those of
  // the ranks, weighted by their samples (each rank's loss is a mean over its own samples). False:
  // the loss of the job is the sum of those of the ranks.
  virtual bool weighs_by_samples() const = 0;
};

}  // namespace catena::functions
