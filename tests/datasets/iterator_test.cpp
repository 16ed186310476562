// Order, counters and resuming of iterators.
#include "catena/datasets/iterator.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace catena::datasets {
namespace {

std::vector<int64_t> take_epoch(PositionIterator& it) {
  std::vector<int64_t> all;
  do {
    const auto batch = it.next();
    all.insert(all.end(), batch.begin(), batch.end());
  } while (!it.is_new_epoch());
  return all;
}

TEST(SerialIterator, GoesThroughOnceInOrder) {
  SerialIterator it(10, 4);
  EXPECT_EQ(it.batches_per_epoch(), 3);
  EXPECT_FALSE(it.is_new_epoch());
  EXPECT_EQ(it.next().size(), 4u);
  EXPECT_EQ(it.position(), 4);
  EXPECT_DOUBLE_EQ(it.epoch_detail(), 0.4);
  EXPECT_EQ(it.next().front(), 4);
  EXPECT_FALSE(it.is_new_epoch());
  const auto last = it.next();
  EXPECT_EQ(std::vector<int64_t>(last.begin(), last.end()), (std::vector<int64_t>{8, 9}));
  EXPECT_TRUE(it.is_new_epoch());
  EXPECT_EQ(it.epoch(), 1);
  EXPECT_EQ(it.position(), 0);
  EXPECT_TRUE(it.finished());
  EXPECT_TRUE(it.next().empty());
}

TEST(SerialIterator, Repeats) {
  SerialIterator it(3, 2, true);
  for (int epoch = 0; epoch < 3; ++epoch)
    EXPECT_EQ(take_epoch(it), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(it.epoch(), 3);
  EXPECT_FALSE(it.finished());
}

TEST(SerialIterator, DropsALastBatchThatIsNotFull) {
  SerialIterator it(10, 4, {.repeat = true, .drop_last = true});
  EXPECT_EQ(it.batches_per_epoch(), 2);
  for (int epoch = 0; epoch < 3; ++epoch)
    EXPECT_EQ(take_epoch(it), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7})) << epoch;
  EXPECT_EQ(it.epoch(), 3);
  EXPECT_EQ(it.position(), 0);
  SerialIterator once(10, 5, {.drop_last = true});
  EXPECT_EQ(take_epoch(once).size(), 10u) << "the last batch is full";
  EXPECT_TRUE(once.finished());
  EXPECT_TRUE(once.next().empty());
}

TEST(SerialIterator, DropsWhatARunWithSmallerBatchesHasLeft) {
  SerialIterator small(10, 3, true);
  for (int i = 0; i < 3; ++i) small.next();
  SerialIterator large(10, 4, {.repeat = true, .drop_last = true});
  large.set_state(small.state());
  EXPECT_EQ(large.next().front(), 0);
  EXPECT_EQ(large.epoch(), 1);
  EXPECT_EQ(large.position(), 4);
}

TEST(ShuffledIterator, DropsOtherSamplesInEachEpoch) {
  ShuffledIterator it(10, 4, 1, {.drop_last = true});
  const auto missing = [&] {
    const std::vector<int64_t> seen = take_epoch(it);
    EXPECT_EQ(seen.size(), 8u);
    std::vector<int64_t> left;
    for (int64_t i = 0; i < 10; ++i)
      if (std::find(seen.begin(), seen.end(), i) == seen.end()) left.push_back(i);
    EXPECT_EQ(left.size(), 2u);
    return left;
  };
  const auto first = missing();
  EXPECT_TRUE(missing() != first || missing() != first);
  EXPECT_TRUE(it.repeats());
}

TEST(SerialIterator, ArgumentsAreChecked) {
  EXPECT_THROW(SerialIterator(0, 1), ValueError);
  EXPECT_THROW(SerialIterator(5, 0), ValueError);
  EXPECT_THROW(SerialIterator(5, 6, {.drop_last = true}), ValueError) << "no batch is left";
}

TEST(ShuffledIterator, EachEpochIsAnotherPermutation) {
  ShuffledIterator it(50, 7, 3);
  std::vector<std::vector<int64_t>> epochs;
  for (int e = 0; e < 3; ++e) epochs.push_back(take_epoch(it));
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  for (auto& epoch : epochs) {
    std::sort(epoch.begin(), epoch.end());
    for (int64_t i = 0; i < 50; ++i) EXPECT_EQ(epoch[size_t(i)], i);
  }
}

TEST(ShuffledIterator, OrderDependsOnSeedAndEpochOnly) {
  ShuffledIterator small(40, 3, 9), large(40, 40, 9), other(40, 3, 10);
  for (int e = 0; e < 2; ++e) {
    const auto order = take_epoch(small);
    EXPECT_EQ(order, take_epoch(large));
    EXPECT_NE(order, take_epoch(other));
    EXPECT_EQ(order, epoch_order(9, e, 40).to_vector<int64_t>());
  }
}

TEST(ShuffledIterator, ResumesAnywhere) {
  ShuffledIterator whole(23, 5, 4);
  for (int before = 0; before < 12; ++before) {
    ShuffledIterator first(23, 5, 4), second(23, 5, 999);
    for (int i = 0; i < before; ++i) first.next();
    second.set_state(IteratorState::from_array(first.state().to_array()));
    EXPECT_EQ(second.epoch(), first.epoch());
    EXPECT_EQ(second.epoch_detail(), first.epoch_detail());
    EXPECT_EQ(second.is_new_epoch(), first.is_new_epoch());
    for (int i = 0; i < 7; ++i) {
      const auto a = first.next(), b = second.next();
      EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
    }
  }
}

TEST(ShuffledIterator, ForeignStatesAreRefused) {
  ShuffledIterator it(23, 5, 4);
  EXPECT_THROW(it.set_state({24, 4, 0, 0}), ValueError);
  EXPECT_THROW(it.set_state({23, 4, -1, 0}), ValueError);
  EXPECT_THROW(it.set_state({23, 4, 0, 23}), ValueError);
  EXPECT_THROW(IteratorState::from_array(Array::uninitialized({3}, Dtype::kInt64)), ValueError);
}

}  // namespace
}  // namespace catena::datasets
