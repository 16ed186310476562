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

// On a GPU: what its own spans say, whatever the host's calls took.
TEST(TraceSteps, ExposedOnADeviceIsWhatNoKernelHides) {
  RankTimes times = rank_with(0, {0, 100}, {{0, 90}});
  times.work[kMain] = {{0, 100}};
  times.device.kernels = {{0, 30}, {25, 40}, {60, 70}};
  times.device.collectives = {{20, 50}, {65, 80}};
  const RankStep step = find_steps({times})[0].ranks[0];
  EXPECT_EQ(step.communication, 45);
  EXPECT_EQ(step.exposed, 10 + 10);
  EXPECT_EQ(step.own(), 55);
  EXPECT_EQ(step.busy, -1);
}

// The host has asked for three steps before the GPU has done one.
TEST(TraceSteps, AStepOnADeviceEndsWithItsLastWork) {
  RankTimes times = rank_with(0, {10, 20, 30}, {});
  times.device.kernels = {{5, 100}, {100, 210}, {210, 300}};
  times.device.collectives = {{180, 210}, {300, 330}};
  times.device.work = {{22, 300}, {2, 100}, {12, 210}, {30, 330}, {40, 900}};
  times.data = {{21, 24}};
  const auto steps = find_steps({times});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].ranks[0].span, (TimeSpan{100, 210}));
  EXPECT_EQ(steps[1].ranks[0].span, (TimeSpan{210, 330}));
  EXPECT_EQ(steps[0].ranks[0].exposed, 0);
  EXPECT_EQ(steps[1].ranks[0].exposed, 30);
  EXPECT_EQ(steps[1].ranks[0].data, 3) << "by the time of the host";
}

// A pipeline updates several stages in a step, of which it is one.
TEST(TraceSteps, MarkedStepsTakePrecedence) {
  RankTimes times = rank_with(0, {8, 9, 18, 19}, {});
  times.marked_steps = {{10, 20}, {0, 4}, {0, 10}, {12, 15}, {20, 28}};
  const auto steps = find_steps({times});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].ranks[0].span, (TimeSpan{10, 20})) << "those inside of another are none";
  EXPECT_EQ(steps[1].ranks[0].span, (TimeSpan{20, 28}));
}

TEST(TraceSteps, TheBubbleIsWhatNoActionFills) {
  RankTimes times = rank_with(0, {0, 100, 200}, {{40, 60}});
  times.pipeline[kMain] = {{10, 30}, {30, 70}, {80, 90}, {100, 200}};
  auto steps = find_steps({times});
  EXPECT_EQ(steps[0].ranks[0].busy, 20 + 20 + 10) << "a wait inside of an action is idle time";
  EXPECT_EQ(steps[1].ranks[0].busy, 100);
  times.device.kernels = {{0, 10}, {110, 140}};
  steps = find_steps({times});
  EXPECT_EQ(steps[0].ranks[0].busy, 10) << "actions on a GPU only queue its work";
  EXPECT_EQ(steps[1].ranks[0].busy, 30);
}

TEST(TraceSteps, TableWithBubbles) {
  const std::int64_t ms = 1'000'000;
  std::vector<RankTimes> ranks = {rank_with(0, {0, 4 * ms}, {}), rank_with(1, {0, 4 * ms}, {})};
  ranks[1].pipeline[kMain] = {{ms, 4 * ms}};
  EXPECT_EQ(describe_steps(ranks, find_steps(ranks)),
            "  rank   median step  communication, exposed    bubble  waiting for data  slowest in\n"
            "     0      4.000 ms                   0.0 %         -             0.0 %  1 of 1\n"
            "     1      4.000 ms                   0.0 %    25.0 %             0.0 %  0 of 1\n");
}

TEST(TraceSteps, WithoutUpdatesTheTableIsOfTheWholeRun) {
  const std::vector<RankTimes> ranks = {rank_with(0, {}, {{0, 25}})};
  const std::string text = describe_steps(ranks, {});
  EXPECT_TRUE(text.starts_with("Fewer than two steps are marked (by Optimizer::update)")) << text;
  EXPECT_NE(text.find("25.0 %"), std::string::npos) << text;
  EXPECT_EQ(text.find("slowest"), std::string::npos) << text;
}

}  // namespace
}  // namespace catena::launch
