// Updaters: one step of training after the other, on the next batch. A Trainer runs them.
#pragma once

#include <cstdint>
#include <functional>

#include "catena/datasets/prefetch.h"
#include "catena/parallel/multi_node_optimizer.h"
#include "catena/training/evaluator.h"

namespace catena::training {

// Forward, backward and update on one batch; the numbers of its score, as Arrays if all are means
// over the samples. Of an empty batch, which a rank gets that has run out of samples, they are not
// asked for.
using Step = std::function<Numbers(const datasets::Batch&)>;

// zero_grads, backward from the loss (times the optimizer's loss scale), update. The optimizer must
// outlive the step. ValueError when the score is empty, or gives no numbers.
Step make_step(Optimizer& optimizer, Score score);
// What a rank without samples does in a step. kRun: it runs the score and backward on its empty
// batch, whose numbers do not count. Models whose ranks meet inside need it, such as those with
// parallel::SyncBatchNormalization; batches made by a Collate are not empty arrays and cannot. With
// Sharding::kParameters, where ranks meet in each use of a parameter, kSkip does the same.
enum class EmptyBatches : uint8_t { kSkip, kRun };
// The same on every rank: a rank counts by its samples, and one without joins the update. With
// BucketOptions::slices it runs its slices one after the other, each through the score, and the
// numbers are the means over them; ValueError for kRun, which is for layers that slices exclude.
Step make_step(parallel::MultiNodeOptimizer& optimizer, Score score,
               EmptyBatches empty = EmptyBatches::kSkip);

// The rows of a slice as a batch, for loops over MultiNodeOptimizer::slices. ShapeError for a batch
// of a Collate that has an array without a row for each sample.
datasets::Batch rows_of(const datasets::Batch& batch, const parallel::BatchSlice& slice);

// What a multi-node optimizer compares of a batch over the ranks; make_step passes it on.
parallel::BatchOrder order_of(const datasets::BatchPlace& place);

// Trains on batches of one iterator, which outlives it. Derive from it for steps that need more
// than one batch, or more than one optimizer.
class Updater {
 public:
  explicit Updater(datasets::BatchIterator& batches) : batches_(batches) {}
  virtual ~Updater() = default;
  Updater(const Updater&) = delete;
  Updater& operator=(const Updater&) = delete;

  // One step. Advances batches() by at least one batch, and adds the numbers of the samples to
  // `means`, then or in settle().
  virtual void update(Means& means) = 0;
  // Called before `means` are read: adds the numbers that update() has not added yet.
  virtual void settle(Means& /*means*/) {}
  // The iterator: epoch, position and state of the run are read from it.
  datasets::BatchIterator& batches() { return batches_; }
  const datasets::BatchIterator& batches() const { return batches_; }

 private:
  datasets::BatchIterator& batches_;
};

// One batch, one call of the step.
class StandardUpdater : public Updater {
 public:
  // ValueError when the step is empty.
  StandardUpdater(datasets::BatchIterator& batches, Step step);
  // ValueError when the iterator has no next batch: it must repeat.
  void update(Means& means) override;

 protected:
  // The step on a batch. ShapeError for a number that is not one element.
  Numbers run_step(const datasets::Batch& batch) const;

 private:
  Step step_;
};

}  // namespace catena::training
