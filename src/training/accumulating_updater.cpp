#include "catena/training/accumulating_updater.h"

#include <algorithm>
#include <optional>

#include "catena/functions/math/elementwise.h"

namespace catena::training {

AccumulatingUpdater::AccumulatingUpdater(datasets::BatchIterator& batches,
                                         int64_t batches_an_update, Optimizer& optimizer,
                                         parallel::MultiNodeOptimizer* ranks, Score score)
    : Updater(batches),
      batches_an_update_(batches_an_update),
      optimizer_(optimizer),
      ranks_(ranks),
      score_(std::move(score)) {
  CATENA_CHECK(ValueError, batches_an_update > 0, "AccumulatingUpdater: ", batches_an_update,
               " batches an update, expected at least 1");
  CATENA_CHECK(
      ValueError, ranks == nullptr || ranks->slice_count() == 0,
      "AccumulatingUpdater: the optimizer runs batches in slices, which accumulate as well; "
      "take batches as large as an update needs, more slices, and make_step");
  CATENA_CHECK(ValueError, score_ != nullptr,
               "AccumulatingUpdater: the score is an empty function; give one that returns the "
               "loss first");
}

AccumulatingUpdater::AccumulatingUpdater(datasets::BatchIterator& batches,
                                         int64_t batches_an_update, Optimizer& optimizer,
                                         Score score)
    : AccumulatingUpdater(batches, batches_an_update, optimizer, nullptr, std::move(score)) {}

AccumulatingUpdater::AccumulatingUpdater(datasets::BatchIterator& batches,
                                         int64_t batches_an_update,
                                         parallel::MultiNodeOptimizer& optimizer, Score score)
    : AccumulatingUpdater(batches, batches_an_update, optimizer.actual_optimizer(), &optimizer,
                          std::move(score)) {}

// All at once: the weight of each loss is its share of the samples of all.
std::vector<datasets::Batch> AccumulatingUpdater::take_batches() {
  std::vector<datasets::Batch> taken;
  do {
    auto batch = batches().next();
    CATENA_CHECK(ValueError, batch.has_value(), "training: the batches have ended after ",
                 batches().epoch(),
                 " epoch(s); make their order with repeat = true (that of ShuffledIterator)");
    taken.push_back(std::move(*batch));
  } while (int64_t(taken.size()) < batches_an_update_ && !batches().is_new_epoch());
  return taken;
}

void AccumulatingUpdater::learn(const datasets::Batch& batch, int64_t samples, Means& means) {
  const Variables numbers = score_(batch);
  CATENA_CHECK(ValueError, !numbers.empty(),
               "training: the score of a batch is empty; return the loss as its first number");
  const double share = samples > 0 ? double(batch.size()) / double(samples) : 0;
  const bool counts = batch.size() > 0;
  optimizer_.scaled(numbers[0] * share).backward({.drop_parameter_gradients = !counts});
  if (!counts) return;
  Arrays values;
  for (const Variable& number : numbers) values.push_back(number.data());
  means.add(values, double(batch.size()));
}

void AccumulatingUpdater::update(Means& means) {
  std::vector<datasets::Batch> taken = take_batches();
  int64_t own = 0, all = 0;
  for (const datasets::Batch& batch : taken) {
    own += batch.size();
    all += batch.global_count;
  }
  const datasets::BatchPlace place = taken.back().place;
  if (!ranks_ || !ranks_->gathers_in_use())
    std::erase_if(taken, [](const datasets::Batch& batch) { return batch.size() == 0; });
  optimizer_.zero_grads();
  if (ranks_) {
    ranks_->set_batch_weight(own, all);
    ranks_->set_batch_order(order_of(place));
  }
  for (size_t i = 0; i < taken.size(); ++i) {
    // The last backward pass of this rank averages the sums.
    std::optional<parallel::NoSync> local;
    if (ranks_ && i + 1 < taken.size()) local.emplace(ranks_->comm());
    learn(taken[i], own, means);
    taken[i].arrays.clear();
  }
  optimizer_.update();
}

}  // namespace catena::training
