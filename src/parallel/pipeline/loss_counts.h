// Counts of a step's losses: what the micro-batches divided by, on their way to all stages.
#pragma once

#include <cstdint>
#include <vector>

#include "catena/autograd/mean.h"
#include "catena/comm/communicator.h"
#include "parallel/pipeline/mailbox.h"
#include "parallel/pipeline/micro_batches.h"

namespace catena::parallel::pipeline {

// A loss that is a mean over D elements (mean.h) of the n_m samples of a micro-batch begins its
// pass with D / (k n) instead of n_m / n, as in loss_weight.h. Counts are D / k, n_m for a loss
// that declares nothing: in units of samples. They travel beside the gradients of the micro-batch,
// so that every stage knows their sum when its gradients are complete.
class LossCounts {
 public:
  // Whether a loss that declares nothing counts, too: where other ranks cannot know that.
  void begin_step(int stages, const MicroBatches& batch, bool counts_all);

  // The gradient with which the pass of the loss of a micro-batch begins, and its count.
  // GradientError for a sum of means, unless everything counts.
  Parcel start_of(const Variable& loss, int64_t samples);
  // Collective over replicas, once: the k of all. `mean`: of the first loss; null: it has none.
  void agree(Communicator* replicas, const Mean* mean, int64_t samples, bool has_loss);

  // The count of the next micro-batch has come to a stage, which has so many samples: float64 of
  // one element, on its device; undefined: they all count.
  void add(int stage, const Array& count, int64_t samples);
  // Of all micro-batches, in their order; undefined: everything counts.
  Array sum(int stage) const;
  // The same if a loss has declared what it counts.
  Array declared_sum(int stage) const { return declared_ ? sum(stage) : Array(); }
  // The value of the loss, summed with the starts of the passes, as the mean over what counted.
  Array mean_of(const Array& sum, int stage) const;

 private:
  struct Sum {
    Array value;
    double samples = 0;  // that all count
    int counts = 0;
  };
  std::vector<Sum> sums_;  // by stage
  MicroBatches batch_;
  bool counts_all_ = false;
  bool declared_ = false;
  bool agreed_ = false;
  double scale_ = 1;  // k
};

}  // namespace catena::parallel::pipeline
