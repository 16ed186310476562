// The captured step trains as the eager one.
#include "catena/training/captured_updater.h"

#include <gtest/gtest.h>

#include "catena/testing_markers.h"
#include "error_text.h"
#include "training/problem.h"

namespace catena::training {
namespace {

struct Training {
  testing::Net model{Dtype::kFloat32};
  optimizers::Adam optimizer{0.01};
  datasets::ResidentIterator batches;
  explicit Training(Device device, int64_t batch)
      : Training(device, datasets::ShuffledIterator(kSamples, batch, 1)) {}
  Training(Device device, const datasets::PositionIterator& order)
      : batches(make_data(), order, device) {
    model.to(device);
    optimizer.setup(model);
  }
  Step step() { return make_step(optimizer, score_of(model)); }
};

TEST(CapturedUpdater, NeedsAGpu) {
  Training t(cpu(1), 5);
  expect_contains(error_of<DeviceError>([&] { CapturedUpdater(t.batches, t.optimizer, t.step()); }),
                  {"CUDA graphs need a GPU", "cpu:1"});
}

// 23 samples: with batches of 5 the last one of an epoch is short, with 1 none is.
TEST(CapturedUpdater, EqualsTheEagerStep) {
  CATENA_NEEDS_GPU();
  for (const int64_t batch : {5, 1}) {
    Training eager(cuda_device(), batch), captured(cuda_device(), batch);
    StandardUpdater one(eager.batches, eager.step());
    CapturedUpdater other(captured.batches, captured.optimizer, captured.step());
    Means means({"loss", "accuracy"}), others({"loss", "accuracy"});
    while (eager.batches.epoch() < 3) {
      one.update(means);
      other.update(others);
      EXPECT_EQ(captured.batches.position(), eager.batches.position());
      EXPECT_EQ(captured.batches.epoch(), eager.batches.epoch());
    }
    other.settle(others);
    expect_near(numbers_of(captured.model), numbers_of(eager.model));
    EXPECT_EQ(others.count("loss"), 3 * kSamples);
    EXPECT_NEAR(others.value("loss"), means.value("loss"), 1e-5);
    EXPECT_NEAR(others.value("accuracy"), means.value("accuracy"), 1e-6);
    EXPECT_EQ(captured.optimizer.t(), eager.optimizer.t());
  }
}

// Without shuffling, and to the end of an order that does not repeat.
TEST(CapturedUpdater, TakesSerialOrders) {
  CATENA_NEEDS_GPU();
  const datasets::PositionIterator repeated = datasets::SerialIterator(kSamples, 5, true),
                                   once = datasets::SerialIterator(kSamples, 1);
  for (const datasets::PositionIterator& order : {repeated, once}) {
    Training eager(cuda_device(), order), captured(cuda_device(), order);
    StandardUpdater one(eager.batches, eager.step());
    CapturedUpdater other(captured.batches, captured.optimizer, captured.step());
    Means means({"loss", "accuracy"}), others({"loss", "accuracy"});
    while (eager.batches.epoch() < (order.repeats() ? 2 : 1)) {
      one.update(means);
      other.update(others);
    }
    expect_near(numbers_of(captured.model), numbers_of(eager.model));
    if (!order.repeats()) {
      EXPECT_THROW(other.update(others), ValueError);
    }
  }
}

// A run that is set back, as by a checkpoint, goes on from there.
TEST(CapturedUpdater, FollowsTheStateOfTheBatches) {
  CATENA_NEEDS_GPU();
  Training eager(cuda_device(), 5), captured(cuda_device(), 5);
  StandardUpdater one(eager.batches, eager.step());
  CapturedUpdater other(captured.batches, captured.optimizer, captured.step());
  Means means({"loss", "accuracy"}), others({"loss", "accuracy"});
  for (int i = 0; i < 8; ++i) {
    if (i == 6) {
      datasets::IteratorState back = eager.batches.state();
      back.epoch = 0;
      back.position = 10;
      eager.batches.set_state(back);
      captured.batches.set_state(back);
    }
    one.update(means);
    other.update(others);
  }
  expect_near(numbers_of(captured.model), numbers_of(eager.model));
}

}  // namespace
}  // namespace catena::training
