// Means over samples, whatever the sizes of batches and shards.
#include "catena/parallel/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "catena/array/creation.h"
#include "catena/comm/factory.h"

namespace catena::parallel {
namespace {

TEST(MeanOverSamples, WeighsBatchesByTheirSize) {
  MeanOverSamples m;
  m.add("loss", 2.0, 3);
  m.add("loss", scalar_array(6.0, {dtype::float32}), 1);
  m.add("loss", scalar_array(1.0, {dtype::float32, cpu(1)}), 4);
  m.add("loss", std::nan(""), 0);  // a batch without samples
  m.add("none", 1.0, 0);
  EXPECT_DOUBLE_EQ(m.result().at("loss"), (2.0 * 3 + 6 + 4) / 8);
  EXPECT_TRUE(std::isnan(m.result().at("none")));
  m.clear();
  EXPECT_TRUE(m.result().empty());
  EXPECT_THROW(m.add("x", 1.0, -1), ValueError);
  EXPECT_THROW(m.add("x", zeros({2}), 1), ShapeError);
}

TEST(MeanOverSamples, AddsUpOverRanks) {
  comm::run_threads(4, [](Communicator& comm) {
    MeanOverSamples m;
    // Samples 0..9 with value i^2; rank 3 has none.
    const int begin[] = {0, 5, 9, 10, 10};
    for (int i = begin[comm.rank()]; i < begin[comm.rank() + 1]; ++i)
      m.add("square", double(i * i), 1);
    const auto result = m.result(comm);
    EXPECT_DOUBLE_EQ(result.at("square"), 28.5);
    EXPECT_EQ(result.size(), 1u);
  });
}

}  // namespace
}  // namespace catena::parallel
