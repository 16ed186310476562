// Means over samples, whatever the sizes of batches and shards.
#include "catena/parallel/sum_over_ranks.h"

#include <gtest/gtest.h>

#include <cmath>

#include "catena/comm/factory.h"
#include "catena/training/evaluator.h"

namespace catena::parallel {
namespace {

TEST(SumOverRanks, WithMeansWeighsSamplesOfAllRanks) {
  comm::run_threads(4, [](Communicator& comm) {
    training::Means means({"square", "none"});
    // Samples 0..9 with value i^2; rank 3 has none.
    const int begin[] = {0, 5, 9, 10, 10};
    for (int i = begin[comm.rank()]; i < begin[comm.rank() + 1]; ++i)
      means.add("square", double(i * i), 1);
    means.reduce(&comm);
    EXPECT_DOUBLE_EQ(means.value("square"), 28.5);
    EXPECT_EQ(means.count("square"), 10);
    EXPECT_TRUE(std::isnan(means.value("none")));
  });
}

// 1e16 + 1 + 1 differs from 1 + 1 + 1e16: the order must be that of the ranks, on each of them.
TEST(SumOverRanks, AddsInOrderOfRank) {
  comm::run_threads(3, [](Communicator& comm) {
    double numbers[] = {comm.rank() == 0 ? 1e16 : 1.0, comm.rank() == 2 ? 1e16 : 1.0};
    sum_over_ranks(numbers, &comm);
    EXPECT_EQ(numbers[0], 1e16);
    EXPECT_EQ(numbers[1], 1e16 + 2);
  });
}

TEST(SumOverRanks, NamesTheRankWithOtherNumbers) {
  comm::run_threads(2, [](Communicator& comm) {
    std::vector<double> numbers(comm.rank() == 0 ? 2 : 3);
    EXPECT_THROW(sum_over_ranks(numbers, &comm), ValueError);
  });
}

TEST(SumOverRanks, WithoutACommunicatorThereIsOneProcess) {
  double numbers[] = {1, 2};
  sum_over_ranks(numbers, nullptr);
  EXPECT_EQ(numbers[1], 2);
  training::Means means({"loss"});
  means.add("loss", 2.0, 3);
  means.reduce(nullptr);
  EXPECT_EQ(means.value("loss"), 2.0);
}

}  // namespace
}  // namespace catena::parallel
