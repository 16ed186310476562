#include "job/trace_steps.h"

#include <gtest/gtest.h>

#include <utility>

namespace catena::launch {
namespace {

constexpr int kMain = 1, kOther = 2;

// Updates at these times, and communication on the main thread.
RankTimes rank_with(int rank, std::vector<std::int64_t> updates, TimeSpans communication) {
  RankTimes times;
  times.rank = rank;
  times.updates = std::move(updates);
  times.communication[kMain] = std::move(communication);
  times.whole = {0, 100};
  return times;
}

TEST(TraceSteps, LieBetweenUpdates) {
  EXPECT_TRUE(find_steps({}).empty());
  EXPECT_TRUE(find_steps({rank_with(0, {10}, {})}).empty()) << "the begin of step 1 is not known";
  const auto steps = find_steps({rank_with(0, {10, 30, 60}, {})});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].number, 2);
  EXPECT_EQ(steps[0].ranks.at(0).span, (TimeSpan{10, 30}));
  EXPECT_EQ(steps[1].ranks.at(0).span, (TimeSpan{30, 60}));
  EXPECT_EQ(steps[0].slowest, -1);
}

// What the thread of the call does around it is not overlap; what another thread does is.
TEST(TraceSteps, CommunicationIsExposedUnlessAnotherThreadWorks) {
  RankTimes times = rank_with(0, {0, 100}, {{20, 60}});
  times.work[kMain] = {{10, 80}};
  EXPECT_EQ(find_steps({times})[0].ranks[0].communication, 40);
  EXPECT_EQ(find_steps({times})[0].ranks[0].exposed, 40);
  times.work[kOther] = {{0, 30}, {50, 90}};
  EXPECT_EQ(find_steps({times})[0].ranks[0].exposed, 20);
}

TEST(TraceSteps, WaitingForDataIsCounted) {
  RankTimes times = rank_with(0, {0, 100, 200}, {});
  times.data = {{90, 110}, {150, 160}};
  const auto steps = find_steps({times});
  EXPECT_EQ(steps[0].ranks[0].data, 10);
  EXPECT_EQ(steps[1].ranks[0].data, 20);
}

// All ranks take equally long; the one that waits least is the one that others wait for.
TEST(TraceSteps, TheSlowestRankWaitsLeast) {
  const auto steps = find_steps({rank_with(0, {0, 100, 200}, {{40, 100}, {190, 200}}),
                                 rank_with(1, {0, 100, 200}, {{90, 100}, {120, 200}})});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].slowest, 1);
  EXPECT_EQ(steps[1].slowest, 0);
}

// A rank that failed has the first steps; one that dropped events the last.
TEST(TraceSteps, RanksMayHaveFewer) {
  auto ranks = {rank_with(0, {0, 10, 20, 30}, {}), rank_with(1, {0, 10}, {})};
  auto steps = find_steps(ranks);
  EXPECT_EQ(steps[0].ranks.size(), 2u);
  EXPECT_EQ(steps[2].ranks.size(), 1u);
  RankTimes dropped = rank_with(1, {20, 30}, {});
  dropped.dropped = true;
  steps = find_steps({rank_with(0, {0, 10, 20, 30}, {}), dropped});
  EXPECT_EQ(steps[0].ranks.size(), 1u);
  EXPECT_EQ(steps[2].ranks.size(), 2u);
}

TEST(TraceSteps, Table) {
  const std::int64_t ms = 1'000'000;
  const std::vector<RankTimes> ranks = {
      rank_with(0, {0, 2 * ms, 4 * ms}, {{ms, 2 * ms}, {3 * ms, 4 * ms}}),
      rank_with(1, {0, 2 * ms, 4 * ms}, {})};
  EXPECT_EQ(describe_steps(ranks, find_steps(ranks)),
            "  rank   median step  communication, exposed  waiting for data  slowest in\n"
            "     0      2.000 ms                  50.0 %             0.0 %  0 of 2\n"
            "     1      2.000 ms                   0.0 %             0.0 %  2 of 2\n");
}

TEST(TraceSteps, WithoutUpdatesTheTableIsOfTheWholeRun) {
  const std::vector<RankTimes> ranks = {rank_with(0, {}, {{0, 25}})};
  const std::string text = describe_steps(ranks, {});
  EXPECT_TRUE(text.starts_with("No steps are marked (by Optimizer::update)")) << text;
  EXPECT_NE(text.find("25.0 %"), std::string::npos) << text;
  EXPECT_EQ(text.find("slowest"), std::string::npos) << text;
}

}  // namespace
}  // namespace catena::launch
