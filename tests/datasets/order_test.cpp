// Orders: what an epoch visits, and that it can be found again anywhere.
#include "catena/datasets/order.h"

#include <gtest/gtest.h>

#include <cmath>

#include "catena/array/creation.h"
#include "catena/datasets/iterator.h"
#include "error_text.h"

namespace catena::datasets {
namespace {

// A user's: the first half of the samples and the second one in turn.
struct Halves final : Order {
  explicit Halves(int64_t size) : Order(size, size / 2) {}

 private:
  Array positions(uint64_t /*seed*/, int64_t epoch, Device /*device*/) const override {
    return arange(epoch % 2 * size(), (epoch % 2 + 1) * size(), 1, dtype::int64);
  }
};

// What positions() gives, whatever it is.
struct Given final : Order {
  explicit Given(Array what) : Order(5, 3), what_(std::move(what)) {}

 private:
  Array positions(uint64_t, int64_t, Device) const override { return what_; }
  Array what_;
};

std::vector<int64_t> next_of(PositionIterator& it) {
  const auto batch = it.next();
  return {batch.begin(), batch.end()};
}

TEST(Order, OfAUserIsCutIntoBatches) {
  PositionIterator it(std::make_shared<Halves>(6), 2, {.repeat = true});
  EXPECT_EQ(it.batches_per_epoch(), 2);
  for (const std::vector<int64_t>& expected :
       std::vector<std::vector<int64_t>>{{0, 1}, {2}, {3, 4}, {5}, {0, 1}})
    EXPECT_EQ(next_of(it), expected);
  EXPECT_EQ(it.epoch(), 2);
  PositionIterator copy = it;  // by value: goes on from the same place by itself
  PositionIterator later(std::make_shared<Halves>(6), 2, {.repeat = true});
  later.set_state(it.state());
  EXPECT_EQ(next_of(it), (std::vector<int64_t>{2}));
  EXPECT_EQ(next_of(copy), (std::vector<int64_t>{2}));
  EXPECT_EQ(next_of(later), (std::vector<int64_t>{2}));
}

TEST(Order, WrongPositionsAreErrors) {
  const auto text = [](const Array& what) {
    return error_of<ValueError>([&] { Given(what).of_epoch(0, 7); });
  };
  const auto of = [](std::vector<int64_t> v) { return array(v); };
  EXPECT_NO_THROW(Given(of({0, 4, 4})).of_epoch(0, 0));
  expect_contains(text(of({0, 5, 1})), {"epoch 7", "position 5", "data set of 5 samples"});
  expect_contains(text(of({0, -1, 1})), {"position -1"});
  expect_contains(text(of({0, 1})), {"expected int64 of shape (3,)", "(2,)"});
  expect_contains(text(zeros({3}, dtype::float32)), {"float32"});
  expect_contains(text(Array()), {"undefined"});
  EXPECT_THROW(SequentialOrder(0), ValueError);
  EXPECT_THROW(PositionIterator(nullptr, 2), ValueError);
}

TEST(WeightedOrder, DrawsByWeight) {
  const WeightedOrder order(array({1.0, 0.0, 3.0, 0.0}), 20000);
  EXPECT_EQ(order.dataset_size(), 4);
  EXPECT_EQ(order.size(), 20000);
  std::vector<int64_t> counts(4);
  for (const int64_t p : order.of_epoch(3, 0).to_vector<int64_t>()) ++counts[size_t(p)];
  EXPECT_EQ(counts[1] + counts[3], 0);
  EXPECT_NEAR(double(counts[2]) / 20000, 0.75, 0.015);  // five deviations
  const auto epoch = [&](uint64_t seed, int64_t e) {
    return order.of_epoch(seed, e).to_vector<int64_t>();
  };
  EXPECT_EQ(epoch(3, 1), epoch(3, 1));
  EXPECT_NE(epoch(3, 1), epoch(3, 2));
  EXPECT_NE(epoch(3, 1), epoch(4, 1));
  WeightedIterator it(array({1.0, 2.0, 3.0}), 2, 5);
  EXPECT_EQ(it.size(), 3);
  EXPECT_TRUE(it.repeats());
}

TEST(WeightedOrder, WeightsAreChecked) {
  EXPECT_THROW(WeightedOrder(array({1.0, -1.0})), ValueError);
  EXPECT_THROW(WeightedOrder(array({0.0, 0.0})), ValueError);
  EXPECT_THROW(WeightedOrder(array({1.0, std::nan("")})), ValueError);
  EXPECT_THROW(WeightedOrder(zeros({2, 2})), ShapeError);
  EXPECT_THROW(WeightedOrder(array({1.0}), -1), ValueError);
}

}  // namespace
}  // namespace catena::datasets
