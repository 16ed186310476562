// Training with batch normalization over ranks: batches that do not divide, ranks without samples.
#include <gtest/gtest.h>

#include "catena/comm/factory.h"
#include "catena/functions/connection/linear.h"
#include "catena/functions/loss.h"
#include "catena/parallel/sync_batch_normalization.h"
#include "catena/training/trainer.h"
#include "error_text.h"
#include "set_up.h"
#include "training/problem.h"

namespace catena::training {
namespace {

struct NormNet : FunctionSet {
  functions::Linear l1 = testing::layer(testing::kInputs, 8, Dtype::kFloat64, 1),
                    l2 = testing::layer(8, testing::kClasses, Dtype::kFloat64, 2);
  functions::BatchNormalization bn{8, {.dtype = Dtype::kFloat64}};
  CATENA_FUNCTIONS(l1, bn, l2)
  Variable operator()(const Variable& x) { return l2(bn.relu(l1(x))); }
};

Score norm_score_of(NormNet& model) {
  return [&model](const datasets::Batch& batch) -> Variables {
    const Variable y = model(Variable::constant(batch.x().astype(Dtype::kFloat64)));
    return {testing::F::softmax_cross_entropy(y, batch.t())};
  };
}

// 23 samples in batches of 7: the last one has two, so that of three ranks one has none.
constexpr int64_t kBatch = 7;
TrainerOptions options() { return {.epochs = 2, .metrics = {"loss"}, .silent = true}; }

struct Trained {
  std::vector<double> numbers;
  double loss;
};

std::vector<double> state_of(const NormNet& model) {
  std::vector<double> numbers = numbers_of(model);
  for (const Array& a : {model.bn.avg_mean.data(), model.bn.avg_var.data()})
    for (const double x : a.to_vector<double>()) numbers.push_back(x);
  return numbers;
}

Trained train_alone() {
  const DeviceScope scope(cpu(0));
  NormNet model;
  optimizers::MomentumSGD optimizer(0.1, 0.9);
  optimizer.setup(model);
  datasets::ResidentIterator batches(make_data(), datasets::ShuffledIterator(kSamples, kBatch, 1),
                                     cpu(0));
  StandardUpdater updater(batches, make_step(optimizer, norm_score_of(model)));
  Trainer trainer(updater, model, optimizer, options());
  trainer.run();
  return {state_of(model), trainer.value("train_loss")};
}

Trained train_on(Communicator& comm, EmptyBatches empty,
                 parallel::Sharding sharding = parallel::Sharding::kAuto) {
  NormNet model;
  parallel::synchronize_normalization(model, comm.shared_from_this());
  auto optimizer =
      testing::set_up(model, optimizers::MomentumSGD(0.1, 0.9), comm, {.sharding = sharding});
  datasets::ResidentIterator batches(make_data(), datasets::ShuffledIterator(kSamples, kBatch, 1),
                                     comm.device(), {comm.rank(), comm.size()});
  StandardUpdater updater(batches, make_step(optimizer, norm_score_of(model), empty));
  Trainer trainer(updater, model, optimizer, options());
  trainer.run();
  optimizer.gather_parameters();
  return {state_of(model), trainer.value("train_loss")};
}

TEST(SyncNormalizationTraining, EqualsOneProcess) {
  const Trained expected = train_alone();
  for (const int ranks : {2, 3, 4})
    comm::run_threads(ranks, [&](Communicator& comm) {
      const Trained got = train_on(comm, EmptyBatches::kRun);
      EXPECT_NEAR(got.loss, expected.loss, 1e-9);
      ASSERT_EQ(got.numbers.size(), expected.numbers.size());
      for (size_t i = 0; i < expected.numbers.size(); ++i)
        ASSERT_NEAR(got.numbers[i], expected.numbers[i], 1e-9) << i;
    });
}

// Where ranks meet in each use of a parameter, those without samples run the model as well.
TEST(SyncNormalizationTraining, ShardedParametersRunEmptyBatchesUnasked) {
  const Trained expected = train_alone();
  comm::run_threads(3, [&](Communicator& comm) {
    const Trained got = train_on(comm, EmptyBatches::kSkip, parallel::Sharding::kParameters);
    ASSERT_EQ(got.numbers.size(), expected.numbers.size());
    for (size_t i = 0; i < expected.numbers.size(); ++i)
      ASSERT_NEAR(got.numbers[i], expected.numbers[i], 1e-9) << i;
  });
}

TEST(SyncNormalizationTraining, ARankThatLeavesOutTheLayerIsNamed) {
  expect_contains(error_of<CommError>([] {
                    comm::run_threads(
                        3, [](Communicator& comm) { train_on(comm, EmptyBatches::kSkip); });
                  }),
                  {"rank 2", "SyncBatchNormalization"});
}

}  // namespace
}  // namespace catena::training
