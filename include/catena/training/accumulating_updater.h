// AccumulatingUpdater: gradients of several batches for one update.
#pragma once

#include <vector>

#include "catena/training/updater.h"

namespace catena::training {

// One update for each `batches_an_update` batches: the gradients are those of the mean over all
// their samples, or over what the loss declares that it counted (mean.h), as of one large batch,
// but only one batch is in the graph at a time. An epoch's
// last update has the batches that are left. Layers that look at a whole batch, such as batch
// normalization, see the small ones.
//
// Over ranks the gradients travel once an update. ValueError unless batches_an_update is positive
// and the score is given, and for an optimizer with slices (BucketOptions::slices), which
// accumulate by themselves.
class AccumulatingUpdater final : public Updater {
 public:
  AccumulatingUpdater(datasets::BatchIterator& batches, int64_t batches_an_update,
                      Optimizer& optimizer, Score score);
  AccumulatingUpdater(datasets::BatchIterator& batches, int64_t batches_an_update,
                      parallel::MultiNodeOptimizer& optimizer, Score score);

  // ValueError when the iterator has no next batch: it must repeat.
  void update(Means& means) override;

 private:
  AccumulatingUpdater(datasets::BatchIterator& batches, int64_t batches_an_update,
                      Optimizer& optimizer, parallel::MultiNodeOptimizer* ranks, Score score);
  std::vector<datasets::Batch> take_batches();
  Variables score_of(const datasets::Batch& batch, Means& means);
  void learn_over_ranks(std::vector<datasets::Batch>& taken, Means& means);
  void learn_alone(std::vector<datasets::Batch>& taken, Means& means);

  int64_t batches_an_update_;
  Optimizer& optimizer_;
  parallel::MultiNodeOptimizer* ranks_;  // null: one process
  Score score_;
};

}  // namespace catena::training
