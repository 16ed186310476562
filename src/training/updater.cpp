// Steps of training, eagerly.
#include "catena/training/updater.h"

#include "training/number_sums.h"

namespace catena::training {
namespace {

// Forward and backward; the numbers, of which the loss is unscaled.
Numbers learn(const Optimizer& optimizer, const Score& score, const datasets::Batch& batch) {
  const Variables numbers = score(batch);
  CATENA_CHECK(ValueError, !numbers.empty(),
               "training: the score of a batch is empty; return the loss as its first number");
  optimizer.scaled(numbers[0]).backward();
  return Numbers(numbers);
}

Numbers learn_slices(parallel::MultiNodeOptimizer& optimizer, const Score& score,
                     const datasets::Batch& batch) {
  NumberSums sums;
  for (const auto& slice : optimizer.slices(batch.size(), batch.global_count))
    sums.add(learn(optimizer.actual_optimizer(), score, rows_of(batch, slice)), slice.share());
  return sums.means();
}

void check_score(const Score& score) {
  CATENA_CHECK(ValueError, score != nullptr,
               "make_step: the score is an empty function; give one that returns the loss first");
}

}  // namespace

parallel::BatchOrder order_of(const datasets::BatchPlace& place) {
  return {place.after.size, place.batch, place.after.seed, place.after.epoch, place.after.position};
}

datasets::Batch rows_of(const datasets::Batch& batch, const parallel::BatchSlice& slice) {
  datasets::Batch rows;
  for (const Array& array : batch.arrays) rows.arrays.push_back(slice(array));
  rows.global_count = batch.global_count;
  rows.weight = double(slice.size()) / double(batch.global_count);
  rows.count = slice.size();
  rows.place = batch.place;
  return rows;
}

Step make_step(Optimizer& optimizer, Score score) {
  check_score(score);
  return [&optimizer, score = std::move(score)](const datasets::Batch& batch) {
    optimizer.zero_grads();
    Numbers numbers = learn(optimizer, score, batch);
    optimizer.update();
    return numbers;
  };
}

Step make_step(parallel::MultiNodeOptimizer& optimizer, Score score, EmptyBatches empty) {
  check_score(score);
  CATENA_CHECK(
      ValueError, empty == EmptyBatches::kSkip || optimizer.slice_count() == 0,
      "make_step: EmptyBatches::kRun with slices; layers whose ranks meet inside depend on "
      "the number of ranks, which slices exclude");
  return [&optimizer, score = std::move(score), empty](const datasets::Batch& batch) {
    const bool runs_empty = empty == EmptyBatches::kRun || optimizer.gathers_in_use();
    optimizer.zero_grads();
    optimizer.set_batch_order(order_of(batch.place));
    if (optimizer.slice_count() == 0) optimizer.set_batch_weight(batch.size(), batch.global_count);
    Numbers numbers;
    if (optimizer.slice_count() > 0)
      numbers = learn_slices(optimizer, score, batch);
    else if (batch.size() > 0 || runs_empty)
      numbers = learn(optimizer.actual_optimizer(), score, batch);
    optimizer.update();
    return numbers;
  };
}

StandardUpdater::StandardUpdater(datasets::BatchIterator& batches, Step step)
    : Updater(batches), step_(std::move(step)) {
  CATENA_CHECK(ValueError, step_ != nullptr,
               "StandardUpdater: the step is an empty function; make one with make_step()");
}

Numbers StandardUpdater::run_step(const datasets::Batch& batch) const {
  Numbers numbers = step_(batch);
  for (const Array& number : numbers)
    CATENA_CHECK(ShapeError, number.defined() && number.size() == 1,
                 "training: a step returned a number that is ",
                 number.defined() ? message("an array of shape ", number.shape()) : "undefined",
                 ", expected one element; reduce it, for instance by mean()");
  return numbers;
}

void StandardUpdater::update(Means& means) {
  const auto batch = batches().next();
  CATENA_CHECK(ValueError, batch.has_value(), "training: the batches have ended after ",
               batches().epoch(),
               " epoch(s); make their order with repeat = true (that of ShuffledIterator)");
  const Numbers numbers = run_step(*batch);
  if (batch->size() > 0) means.add_counted(numbers, double(batch->size()));
}

}  // namespace catena::training
