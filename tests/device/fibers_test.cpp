// The fibers that stand for threads of a block.
#include "device/fibers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace fibers {
namespace {

TEST(Fibers, MeetAsOftenAsTheyLike) {
  constexpr unsigned kCount = 256;
  Meeting meeting(kCount);
  std::vector<unsigned> values(kCount, 1);
  run(kCount, [&](unsigned self) {
    for (unsigned distance = 1; distance < kCount; distance *= 2) {
      const unsigned other = values[(self + distance) % kCount];
      meeting.wait();
      values[self] += other;
      meeting.wait();
    }
  });
  EXPECT_EQ(values, std::vector<unsigned>(kCount, kCount));
}

TEST(Fibers, RunInNoOrder) {
  std::vector<unsigned> order, sorted(64);
  run(64, [&](unsigned self) { order.push_back(self); });
  std::iota(sorted.begin(), sorted.end(), 0u);
  EXPECT_NE(order, sorted);
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, sorted);
}

TEST(Fibers, ThatNobodyJoinsEndWithAnError) {
  Meeting meeting(3);
  EXPECT_THROW(run(3,
                   [&](unsigned self) {
                     if (self != 1) meeting.wait();
                   }),
               std::logic_error);
  Meeting next(2);
  int met = 0;
  run(2, [&](unsigned) {
    next.wait();
    ++met;
  });
  EXPECT_EQ(met, 2) << "the next block is not disturbed";
}

}  // namespace
}  // namespace fibers
