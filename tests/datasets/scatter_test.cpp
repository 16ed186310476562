// Every sample of every global batch is on exactly one rank, and the weights are exact.
#include "catena/datasets/scatter.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace catena::datasets {
namespace {

struct Case {
  int64_t size, batch;
  int ranks;
};
void PrintTo(const Case& c, std::ostream* os) {
  *os << c.size << " by " << c.batch << " on " << c.ranks;
}

class ScatterTest : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Scatter, ScatterTest,
                         ::testing::Values(Case{100, 10, 1}, Case{100, 10, 2}, Case{103, 10, 4},
                                           Case{7, 5, 8}, Case{10, 10, 3}, Case{1, 100, 4},
                                           Case{17, 1, 2}));

TEST_P(ScatterTest, EachSampleOnceAnEpochOnOneRank) {
  const auto [size, batch, ranks] = GetParam();
  PositionIterator one = ShuffledIterator(size, batch, 5);
  std::vector<ScatteredIterator> parts;
  for (int r = 0; r < ranks; ++r)
    parts.emplace_back(ShuffledIterator(size, batch, 5), RankOf{r, ranks});
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<int> seen(static_cast<size_t>(size));
    do {
      const auto global = one.next();
      std::vector<int64_t> joined;
      double weights = 0;
      for (auto& part : parts) {
        const auto p = part.next();
        EXPECT_EQ(p.global_count, int64_t(global.size()));
        EXPECT_EQ(p.weight, double(p.positions.size()) / double(global.size()));
        weights += p.weight;
        joined.insert(joined.end(), p.positions.begin(), p.positions.end());
      }
      EXPECT_TRUE(std::equal(joined.begin(), joined.end(), global.begin(), global.end()));
      EXPECT_NEAR(weights, 1, 1e-15);
      for (const int64_t position : joined) ++seen[size_t(position)];
    } while (!one.is_new_epoch());
    EXPECT_EQ(seen, std::vector<int>(static_cast<size_t>(size), 1));
    for (auto& part : parts) {
      EXPECT_EQ(part.order().epoch(), epoch + 1);
      EXPECT_TRUE(part.order().is_new_epoch());
    }
  }
}

TEST(Scatter, SharesAreContiguousAndBalanced) {
  for (const int64_t count : {0, 1, 5, 8, 9, 1000}) {
    int64_t next = 0, shortest = count, longest = 0;
    for (int r = 0; r < 8; ++r) {
      const Share share = scatter(count, {r, 8});
      EXPECT_EQ(share.begin, next);
      next = share.end;
      shortest = std::min(shortest, share.size());
      longest = std::max(longest, share.size());
    }
    EXPECT_EQ(next, count);
    EXPECT_LE(longest - shortest, 1);
  }
}

TEST(Scatter, RanksAreChecked) {
  EXPECT_THROW(scatter(10, {-1, 2}), ValueError);
  EXPECT_THROW(scatter(10, {2, 2}), ValueError);
  EXPECT_THROW(scatter(10, {0, 0}), ValueError);
  EXPECT_THROW(scatter(-1, {0, 1}), ValueError);
  EXPECT_THROW(ScatteredIterator(SerialIterator(4, 2), {3, 2}), ValueError);
}

}  // namespace
}  // namespace catena::datasets
