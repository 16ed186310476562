#include "catena/training/accumulating_updater.h"

#include <optional>
#include <utility>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/autograd/backward.h"
#include "core/compute_dtype.h"
#include "parallel/loss_weight.h"

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

// All at once: in one process the weight of each loss is its share of all samples.
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

Variables AccumulatingUpdater::score_of(const datasets::Batch& batch, Means& means) {
  const Variables numbers = score_(batch);
  CATENA_CHECK(ValueError, !numbers.empty(),
               "training: the score of a batch is empty; return the loss as its first number");
  if (batch.size() > 0) means.add_counted(Numbers(numbers), double(batch.size()));
  return numbers;
}

void AccumulatingUpdater::update(Means& means) {
  std::vector<datasets::Batch> taken = take_batches();
  optimizer_.zero_grads();
  if (ranks_)
    learn_over_ranks(taken, means);
  else
    learn_alone(taken, means);
}

// The last backward pass of this rank averages the sums. Ranks have as many batches, some of which
// may be empty.
void AccumulatingUpdater::learn_over_ranks(std::vector<datasets::Batch>& taken, Means& means) {
  ranks_->set_batch_order(order_of(taken.back().place));
  for (datasets::Batch& batch : taken) {
    std::optional<parallel::NoSync> more;
    if (&batch != &taken.back()) more.emplace(ranks_->accumulate());
    const bool counts = batch.size() > 0;
    ranks_->set_batch_weight(batch.size(), batch.global_count);
    if (counts || ranks_->gathers_in_use())
      optimizer_.scaled(score_of(batch, means)[0]).backward({.drop_parameter_gradients = !counts});
    batch.arrays.clear();
  }
  optimizer_.update();
}

namespace {

// Adds a stage for one update.
class FactorInUpdate {
 public:
  explicit FactorInUpdate(Optimizer& optimizer)
      : optimizer_(optimizer), stage_(std::make_shared<parallel::FactorStage>()) {
    optimizer_.add_stage(stage_);
  }
  ~FactorInUpdate() { optimizer_.remove_stage(*stage_); }
  void set(const Array& factor) { stage_->set_factor(factor); }

 private:
  Optimizer& optimizer_;
  std::shared_ptr<parallel::FactorStage> stage_;
};

}  // namespace

// As over ranks (parallel/loss_weight.h), with one of them. A pass begins with D / (k n) instead of
// n_m / n, and the update multiplies by k n / C.
void AccumulatingUpdater::learn_alone(std::vector<datasets::Batch>& taken, Means& means) {
  double samples = 0, scale = 0;
  for (const datasets::Batch& batch : taken) samples += double(batch.size());
  Array counted;
  for (datasets::Batch& batch : taken) {
    const Variable loss = optimizer_.scaled(score_of(batch, means)[0]);
    batch.arrays.clear();
    const Mean* mean = mean_of(loss);
    if (mean == nullptr) require_countable("AccumulatingUpdater", loss);
    if (scale == 0) scale = parallel::scale_of(mean, double(batch.size()));
    const Array own = mean ? mean->counted.reshape({1}).to(loss.device())
                           : full({1}, scale * double(batch.size()),
                                  {compute_dtype(loss.dtype()), loss.device()});
    backward({loss}, {divide(own, scale * samples).astype(loss.dtype()).reshape(loss.shape())});
    const Array wide = own.astype(dtype::float64);
    counted = counted.defined() ? counted + wide : wide;
  }
  FactorInUpdate stage(optimizer_);
  stage.set(parallel::factor_over(counted, scale * samples));
  optimizer_.update();
}

}  // namespace catena::training
