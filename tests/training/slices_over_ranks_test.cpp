// Trainers of optimizers with slices: one result on any number of ranks.
#include <gtest/gtest.h>

#include "catena/testing_markers.h"
#include "catena/training/accumulating_updater.h"
#include "catena/training/captured_updater.h"
#include "catena/training/trainer.h"
#include "error_text.h"
#include "parallel/sliced_training.h"
#include "set_up.h"
#include "temp_folder.h"

namespace catena::training {
namespace {

namespace F = catena::functions;
using namespace catena::testing;  // NOLINT: the networks of these tests

datasets::DatasetPtr images() {
  const Batch batch = wide_batch(0, 60, 3 * 12 * 12, dtype::float32);
  return std::make_shared<datasets::TupleDataset>(Arrays{batch.x, batch.t});
}

struct End {
  Bits parameters, persistents;
  double loss = 0;
};

// Up to `epochs` on so many ranks; goes on from the folder's checkpoint if there is one.
End trained(int ranks, int64_t epochs, const std::string& out, int slices = 8) {
  End end;
  comm::run_threads(ranks, [&](Communicator& comm) {
    random::default_state(comm.device()).seed(1 + uint64_t(comm.rank()));
    ConvolutionNet model;
    auto optimizer = set_up(model, optimizers::Adam(0.01), comm, {.slices = slices});
    datasets::PrefetchIterator batches(images(), datasets::ShuffledIterator(60, 25, 1),
                                       comm.device(), {comm.rank(), comm.size()});
    StandardUpdater updater(
        batches, make_step(optimizer, [&](const datasets::Batch& batch) -> Variables {
          return {F::softmax_cross_entropy(model(Variable::constant(batch.x())), batch.t())};
        }));
    Trainer trainer(updater, model, optimizer,
                    {.epochs = epochs, .out = out, .metrics = {"loss"}, .silent = true});
    if (trainer.has_checkpoint()) trainer.resume();
    trainer.run();
    optimizer.average_persistents();
    if (comm.rank() == 0)
      end = {bits_of(model), bits_of_persistents(model), trainer.value("train_loss")};
  });
  return end;
}

TEST(SlicesOverRanks, TrainersGiveOneResult) {
  const DeterministicScope scope;
  const End one = trained(1, 3, "");
  for (const int ranks : {2, 4}) {
    const End end = trained(ranks, 3, "");
    EXPECT_TRUE(end.parameters == one.parameters) << ranks;
    EXPECT_TRUE(end.persistents == one.persistents) << ranks;
    EXPECT_NEAR(end.loss, one.loss, 1e-5) << ranks;
  }
  EXPECT_NE(trained(2, 3, "", 0).parameters, trained(1, 3, "", 0).parameters);
}

// Each epoch on another number of ranks, dropout and running means included.
TEST(SlicesOverRanks, RunsGoOnWithOtherRanks) {
  const DeterministicScope scope;
  const TempFolder straight, changing;
  const End expected = trained(4, 3, straight.path());
  trained(1, 1, changing.path());
  trained(2, 2, changing.path());
  const End end = trained(8, 3, changing.path());
  EXPECT_TRUE(end.parameters == expected.parameters);
  EXPECT_TRUE(end.persistents == expected.persistents);
}

// Twelve steps on a GPU, captured or not.
Bits trained_on_gpu(bool captures) {
  Bits bits;
  comm::ThreadsOptions options;
  options.devices = {cuda_device(0)};
  comm::run_threads(
      1,
      [&](Communicator& comm) {
        random::default_state(comm.device()).seed(1);
        ConvolutionNet model;
        auto optimizer = set_up(model, optimizers::Adam(0.01), comm, {.slices = 4});
        datasets::ResidentIterator batches(images(), datasets::ShuffledIterator(60, 20, 1),
                                           comm.device());
        const Step step = make_step(optimizer, [&](const datasets::Batch& batch) -> Variables {
          return {F::softmax_cross_entropy(model(Variable::constant(batch.x())), batch.t())};
        });
        std::unique_ptr<Updater> updater;
        if (captures)
          updater = std::make_unique<CapturedUpdater>(batches, optimizer, step);
        else
          updater = std::make_unique<StandardUpdater>(batches, step);
        Means means({"loss"});
        for (int k = 0; k < 12; ++k) {
          updater->update(means);
          if (k == 7) optimizer.average_persistents();  // replays follow
        }
        updater->settle(means);
        optimizer.average_persistents();
        bits = bits_of(model);
        bits.merge(bits_of_persistents(model));
      },
      options);
  return bits;
}

TEST(SlicesOverRanks, CapturedStepsGiveTheBitsOfEagerOnes) {
  CATENA_NEEDS_GPU();
  const DeterministicScope scope;
  EXPECT_TRUE(trained_on_gpu(true) == trained_on_gpu(false));
}

TEST(SlicesOverRanks, UpdatersThatCannotUseThemSaySo) {
  const DeterministicScope scope;
  comm::run_threads(1, [](Communicator& comm) {
    ConvolutionNet model;
    auto optimizer = set_up(model, optimizers::Adam(0.01), comm, {.slices = 2});
    datasets::PrefetchIterator batches(images(), datasets::ShuffledIterator(60, 25, 1),
                                       comm.device());
    const Score score = [](const datasets::Batch&) { return Variables(); };
    expect_contains(
        error_of<ValueError>([&] { AccumulatingUpdater(batches, 2, optimizer, score); }),
        {"slices", "make_step"});
    expect_contains(error_of<ValueError>([&] { make_step(optimizer, score, EmptyBatches::kRun); }),
                    {"kRun with slices"});
  });
}

}  // namespace
}  // namespace catena::training
