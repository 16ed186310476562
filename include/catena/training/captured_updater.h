// CapturedUpdater: the step of training as one CUDA graph: fetching the batch, forward, backward
// and update.
#pragma once

#include <memory>

#include "catena/core/graph.h"
#include "catena/training/updater.h"

namespace catena::training {

class NumberSums;  // the library's own

// Captures the step after three eager ones, in which kernels are compiled and memory is found, and
// replays it for every full batch; a shorter one at the end of an epoch runs eagerly. Everything
// that a replay must advance is on the device: the cursor into the epoch's order, the sums of the
// numbers, and what the optimizer keeps. The step may not ask the host for anything (see
// docs/guide/graphs.md).
//
// Of ranks all must use it. DeviceError unless the batches are on a GPU, ValueError when a full
// batch has fewer samples than there are ranks.
class CapturedUpdater final : public StandardUpdater {
 public:
  CapturedUpdater(datasets::ResidentIterator& batches, Optimizer& optimizer, Step step);
  CapturedUpdater(datasets::ResidentIterator& batches, parallel::MultiNodeOptimizer& optimizer,
                  Step step);

  void update(Means& means) override;
  // Waits for the device.
  void settle(Means& means) override;

 private:
  CapturedUpdater(datasets::ResidentIterator& batches, Optimizer& optimizer,
                  parallel::MultiNodeOptimizer* ranks, Step step);
  void place_cursor();
  void replay();
  void step_at_cursor();

  datasets::ResidentIterator& data_;
  Optimizer& optimizer_;
  parallel::MultiNodeOptimizer* ranks_;  // null: one process
  datasets::Share share_;                // this rank's part of a full batch
  // On the device: the epoch's order, where the next batch begins in it, this rank's places in a
  // batch, and the sums of the numbers since settle().
  Array order_, cursor_, offsets_;
  std::shared_ptr<NumberSums> sums_;
  int64_t order_epoch_ = -1, cursor_at_ = -1;  // what order_ and cursor_ hold
  uint64_t order_seed_ = 0;
  int64_t eager_steps_ = 0;
  int64_t summed_ = 0;  // steps in sums_
  cuda::Graph graph_;
};

}  // namespace catena::training
