// Several batches an update are as one large one.
#include "catena/training/accumulating_updater.h"

#include <gtest/gtest.h>

#include "catena/functions/math/elementwise.h"
#include "catena/functions/math/sum.h"
#include "catena/optimizers/loss_scale.h"
#include "error_text.h"
#include "training/one_rank.h"

namespace catena::training {
namespace {

// The parameters after two epochs of 23 samples.
std::vector<double> train(int64_t batch, int64_t batches_an_update, bool scaled = false) {
  testing::Net model(Dtype::kFloat32);
  optimizers::SGD optimizer(0.1);
  optimizer.setup(model);
  if (scaled) optimizers::add_loss_scale(optimizer, {.initial = 1024});
  datasets::ResidentIterator batches(make_data(), datasets::ShuffledIterator(kSamples, batch, 1),
                                     cpu(0));
  AccumulatingUpdater updater(batches, batches_an_update, optimizer, score_of(model));
  Trainer trainer(updater, model, optimizer, {.epochs = 2, .silent = true});
  trainer.run();
  EXPECT_EQ(optimizer.t(),
            2 * ((kSamples + batch * batches_an_update - 1) / (batch * batches_an_update)));
  return numbers_of(model);
}

TEST(AccumulatingUpdater, EqualsALargeBatch) {
  const std::vector<double> whole = train(12, 1);
  expect_near(train(6, 2), whole);  // the last update of an epoch has 6 and 5 samples
  expect_near(train(4, 3), whole);  // 4, 4 and 3
  expect_near(train(3, 4), whole);
  expect_near(train(4, 3, true), whole);
  expect_near(train(4, 4), train(16, 1));  // no update goes from one epoch into the next
  EXPECT_NE(train(6, 1), whole);
}

// With 4 ranks a batch of 3 leaves one without samples, the one of 2 two; the ranks' last batches
// with samples differ.
TEST(AccumulatingUpdater, RanksTrainAsOneProcess) {
  const std::vector<double> whole = train(12, 1);
  const auto run = [&](int ranks, parallel::Sharding sharding) {
    comm::run_threads(ranks, [&](Communicator& comm) {
      RankNet model;
      auto optimizer =
          create_multi_node_optimizer(optimizers::SGD(0.1), comm, {.sharding = sharding});
      model.to(comm.device());
      optimizer.setup(model);
      datasets::ResidentIterator batches(make_data(), datasets::ShuffledIterator(kSamples, 3, 1),
                                         comm.device(), {comm.rank(), comm.size()});
      AccumulatingUpdater updater(batches, 4, optimizer, score_of(model));
      Trainer trainer(updater, model, optimizer, {.epochs = 2, .silent = true});
      trainer.run();
      optimizer.gather_parameters();
      expect_near(numbers_of(model), whole);
    });
  };
  for (const int ranks : {2, 4})
    for (const auto sharding : {parallel::Sharding::kNone, parallel::Sharding::kParameters})
      run(ranks, sharding);
}

// The mean of no samples is NaN, and zero times it as well.
TEST(AccumulatingUpdater, BatchesWithoutSamplesDoNotSpoilParametersOfTheirMean) {
  struct Weighted : RankNet {
    Parameter precision{array({0.5f})};
    CATENA_FUNCTIONS(l1, l2, l3, extra, seen, precision)
  };
  std::vector<double> whole;
  for (const int ranks : {1, 4})
    comm::run_threads(ranks, [&](Communicator& comm) {
      Weighted model;
      auto optimizer = create_multi_node_optimizer(optimizers::SGD(0.1), comm,
                                                   {.sharding = parallel::Sharding::kParameters});
      model.to(comm.device());
      optimizer.setup(model);
      datasets::ResidentIterator batches(make_data(), datasets::ShuffledIterator(kSamples, 3, 1),
                                         comm.device(), {comm.rank(), comm.size()});
      AccumulatingUpdater updater(batches, 4, optimizer, [&](const datasets::Batch& batch) {
        namespace F = functions;
        const Variable each = F::softmax_cross_entropy(
            model(Variable::constant(batch.x())), batch.t(), {.reduction = F::Reduction::kNone});
        return Variables{F::mean(each) * F::sum(F::exp(model.precision))};
      });
      Trainer trainer(updater, model, optimizer,
                      {.epochs = 2, .metrics = {"loss"}, .silent = true});
      trainer.run();
      optimizer.gather_parameters();
      if (ranks == 1) whole = numbers_of(model);
      expect_near(numbers_of(model), whole);
    });
}

// What ranks must agree on travels with each update here as well.
TEST(AccumulatingUpdater, RanksWithOtherOrdersAreErrors) {
  comm::run_threads(2, [&](Communicator& comm) {
    RankNet model;
    auto optimizer = create_multi_node_optimizer(optimizers::SGD(0.1), comm);
    model.to(comm.device());
    optimizer.setup(model);
    const datasets::ShuffledIterator order(kSamples, 4, uint64_t(1 + comm.rank()));
    datasets::ResidentIterator batches(make_data(), order, comm.device(), {comm.rank(), 2});
    AccumulatingUpdater updater(batches, 2, optimizer, score_of(model));
    Means means({"loss", "accuracy"});
    EXPECT_THROW(
        {
          for (int i = 0; i < 3; ++i) updater.update(means);
        },
        Error);
  });
}

TEST(AccumulatingUpdater, RefusesWhatCannotWork) {
  testing::Net model(Dtype::kFloat32);
  optimizers::SGD optimizer(0.1);
  optimizer.setup(model);
  datasets::ResidentIterator once(make_data(), datasets::SerialIterator(kSamples, 20), cpu(0));
  EXPECT_THROW(AccumulatingUpdater(once, 0, optimizer, score_of(model)), ValueError);
  EXPECT_THROW(AccumulatingUpdater(once, 2, optimizer, Score()), ValueError);
  AccumulatingUpdater updater(once, 2, optimizer, score_of(model));
  Means means({"loss", "accuracy"});
  updater.update(means);
  EXPECT_EQ(means.count("loss"), kSamples);
  expect_contains(error_of<ValueError>([&] { updater.update(means); }), {"ended after 1 epoch"});
}

}  // namespace
}  // namespace catena::training
