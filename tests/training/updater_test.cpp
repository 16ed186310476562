// Steps of training: what they do to parameters and means.
#include "catena/training/updater.h"

#include <gtest/gtest.h>

#include "catena/optimizers/loss_scale.h"

#include "error_text.h"
#include "training/problem.h"

namespace catena::training {
namespace {

struct Updaters : ::testing::Test {
  testing::Net model{Dtype::kFloat32};
  optimizers::SGD optimizer{0.1};
  datasets::DatasetPtr data = make_data();
  datasets::ResidentIterator batches{data, datasets::ShuffledIterator(kSamples, 5, 1), cpu(0)};
  Means means{{"loss", "accuracy"}};
  Updaters() { optimizer.setup(model); }
};

TEST_F(Updaters, TrainOnOneBatchAStep) {
  testing::Net twin = model;
  optimizers::SGD by_hand(0.1);
  by_hand.setup(twin);
  StandardUpdater updater(batches, make_step(optimizer, score_of(model)));
  datasets::ResidentIterator same(data, datasets::ShuffledIterator(kSamples, 5, 1), cpu(0));
  double total = 0;
  for (int i = 0; i < 5; ++i) {
    updater.update(means);
    const auto batch = same.next();
    by_hand.zero_grads();
    const Variable loss = score_of(twin)(*batch)[0];
    loss.backward();
    by_hand.update();
    total += loss.item<double>() * double(batch->size());
  }
  EXPECT_EQ(numbers_of(model), numbers_of(twin));
  EXPECT_EQ(updater.batches().epoch(), 1);
  EXPECT_EQ(means.count("loss"), kSamples);
  EXPECT_NEAR(means.value("loss"), total / kSamples, 1e-12);
}

// The loss scale multiplies the loss that backward begins with, not the one that is reported.
TEST_F(Updaters, ScaleTheLossWhereTheOptimizerDoes) {
  testing::Net twin = model;
  optimizers::SGD unscaled(0.1);
  unscaled.setup(twin);
  optimizers::add_loss_scale(optimizer, {.initial = 1024});
  StandardUpdater updater(batches, make_step(optimizer, score_of(model)));
  datasets::ResidentIterator same(data, datasets::ShuffledIterator(kSamples, 5, 1), cpu(0));
  StandardUpdater other(same, make_step(unscaled, score_of(twin)));
  Means others{{"loss", "accuracy"}};
  for (int i = 0; i < 5; ++i) {
    updater.update(means);
    other.update(others);
  }
  EXPECT_EQ(numbers_of(model), numbers_of(twin)) << "a power of two multiplies without rounding";
  EXPECT_EQ(means.value("loss"), others.value("loss"));
}

TEST_F(Updaters, RefuseStepsWithoutTheNumbersThatWereNamed) {
  const auto text_of = [&](const Step& step) {
    StandardUpdater updater(batches, step);
    return error_of<Error>([&] { updater.update(means); });
  };
  expect_contains(text_of([](const auto&) { return Arrays{ones({})}; }),
                  {"got 1 numbers for 2 names", "'loss'"});
  expect_contains(text_of([](const auto&) {
                    return Arrays{ones({2}), ones({})};
                  }),
                  {"shape (2,)", "one element"});
  expect_contains(text_of([](const auto&) { return Arrays{Array(), ones({})}; }), {"undefined"});
  expect_contains(text_of(make_step(optimizer, [](const auto&) { return Variables{}; })),
                  {"the score of a batch is empty"});
}

TEST_F(Updaters, NameEmptyFunctions) {
  expect_contains(error_of<ValueError>([&] { make_step(optimizer, Score()); }),
                  {"make_step: the score is an empty function"});
  expect_contains(error_of<ValueError>([&] { StandardUpdater(batches, Step()); }),
                  {"StandardUpdater: the step is an empty function"});
}

TEST_F(Updaters, SayThatTheBatchesHaveEnded) {
  datasets::ResidentIterator once(data, datasets::SerialIterator(kSamples, 20), cpu(0));
  StandardUpdater updater(once, make_step(optimizer, score_of(model)));
  updater.update(means);
  updater.update(means);
  expect_contains(error_of<ValueError>([&] { updater.update(means); }),
                  {"ended after 1 epoch", "repeat = true"});
}

}  // namespace
}  // namespace catena::training
