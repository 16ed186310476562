#include "catena/parallel/pipeline/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "catena/core/error.h"
#include "catena/parallel/pipeline/schedules.h"
#include "error_text.h"
#include "parallel/pipeline/random_schedules.h"

namespace catena::parallel::pipeline {
namespace {

// One micro-batch through two stages of other times: 1 + 3 forward, 5 + 2 backward.
Schedule one_batch(bool updates = false) {
  const Schedule schedule = gpipe(2, 1);
  return updates ? with_updates(schedule) : schedule;
}

Costs one_batch_costs() {
  Costs costs;
  costs.stages = {
      {.forward = 1, .backward = 2, .reduce = 4, .update = 0.5, .activations = 10, .output = 6},
      {.forward = 3, .backward = 5, .reduce = 1, .update = 0.25, .activations = 20}};
  costs.latency = 0.5;
  costs.bytes_per_second = 12;  // a message takes 1 s
  return costs;
}

TEST(Simulate, OneMicroBatchByHand) {
  const Simulation result = simulate(one_batch(), one_batch_costs());
  EXPECT_DOUBLE_EQ(result.seconds, 1 + 1 + 3 + 5 + 1 + 2);
  EXPECT_EQ(result.busy, (std::vector<double>{3, 8}));
  EXPECT_DOUBLE_EQ(result.bubble(0), 1 - 3.0 / 13);
  EXPECT_DOUBLE_EQ(result.bubble(), 1 - 11.0 / 26);
  EXPECT_EQ(result.messages, 2);
  EXPECT_EQ(result.message_bytes, 12);
  EXPECT_EQ(result.ideal_seconds(), 8);
  // Rank 0 keeps activations, its output and room for the gradient, which are of one group.
  EXPECT_EQ(result.peak_bytes, (std::vector<double>{22, 20}));
}

TEST(Simulate, TimelineOfEveryAction) {
  const Schedule schedule = one_batch(true);
  const Simulation result = simulate(schedule, one_batch_costs());
  const auto span = [&](const Action& action) {
    for (const Span& s : result.timeline)
      if (s.action == action) return s;
    ADD_FAILURE() << to_string(action);
    return Span{};
  };
  EXPECT_EQ(result.timeline.size(), schedule.actions[0].size() + schedule.actions[1].size());
  EXPECT_DOUBLE_EQ(span({Kind::kSendOutput, 0, 0}).begin, 1);
  EXPECT_DOUBLE_EQ(span({Kind::kRecvInput, 1, 0}).end, 2);
  EXPECT_DOUBLE_EQ(span({Kind::kForward, 1, 0}).begin, 2);
  EXPECT_DOUBLE_EQ(span({Kind::kBackward, 0, 0}).begin, 11);
  EXPECT_DOUBLE_EQ(span({Kind::kReduce, 0, 0}).begin, 13);
  EXPECT_DOUBLE_EQ(span({Kind::kUpdate, 0, 0}).begin, 17);
  EXPECT_DOUBLE_EQ(span({Kind::kReduce, 1, 0}).begin, 10);  // beside the message
  EXPECT_DOUBLE_EQ(result.seconds, 17.5);
}

// The reduction of one stage runs beside the backwards of another where messages overlap, and
// before them where they do not.
TEST(Simulate, ReductionsOverlapToo) {
  Costs costs;
  costs.stages = {{.reduce = 2}};
  const Schedule schedule = with_updates(interleaved(2, 2, 2));
  const auto find = [&](const Action& action) {
    const Simulation result = simulate(schedule, costs);
    for (const Span& span : result.timeline)
      if (span.action == action) return span;
    return Span{};
  };
  const Action reduce{Kind::kReduce, 3, 0}, next{Kind::kBackward, 1, 0};
  EXPECT_LT(find(next).begin, find(reduce).end);
  costs.transfers = Transfers::kBlock;
  EXPECT_GE(find(next).begin, find(reduce).end);
}

TEST(Simulate, LastMicroBatchMayBeSmaller) {
  Costs costs;
  costs.last_micro_batch = 0.5;
  EXPECT_DOUBLE_EQ(simulate(gpipe(1, 3), costs).seconds, 3 * 2.5);
  EXPECT_DOUBLE_EQ(simulate(gpipe(1, 3), costs).largest_peak(), 2.5);
}

TEST(Simulate, MemoryOfHalves) {
  // F0 I0 F1 W0 I1 W1: activations 4, of which W keeps 1.
  Schedule schedule{"halves", 2, {0}, {{}}};
  for (const Action& action : {Action{Kind::kForward, 0, 0},
                               {Kind::kBackwardInputs, 0, 0},
                               {Kind::kForward, 0, 1},
                               {Kind::kBackwardWeights, 0, 0},
                               {Kind::kBackwardInputs, 0, 1},
                               {Kind::kBackwardWeights, 0, 1}})
    schedule.actions[0].push_back(action);
  Costs costs;
  costs.stages = {{.activations = 4, .for_weights = 1}};
  EXPECT_EQ(simulate(schedule, costs).largest_peak(), 5);
  // Without I nothing is freed before W.
  std::erase_if(schedule.actions[0],
                [](const Action& a) { return a.kind == Kind::kBackwardInputs; });
  EXPECT_EQ(simulate(schedule, costs).largest_peak(), 8);
}

// Rank 0 sends two outputs while rank 1 is in a long forward.
TEST(Simulate, TransfersOverlapOrBlock) {
  Costs costs;
  costs.stages = {{.forward = 1, .backward = 1}, {.forward = 4, .backward = 1}};
  const Schedule schedule = gpipe(2, 3);
  costs.transfers = Transfers::kOverlap;
  const auto end_of_forwards = [&](const Simulation& result) {
    double end = 0;
    for (const Span& span : result.timeline)
      if (span.rank == 0 && span.action.kind == Kind::kForward) end = std::max(end, span.end);
    return end;
  };
  EXPECT_DOUBLE_EQ(end_of_forwards(simulate(schedule, costs)), 3);
  costs.transfers = Transfers::kBlock;
  EXPECT_DOUBLE_EQ(end_of_forwards(simulate(schedule, costs)), 6);  // F0 F1 (waits until 5) F2
}

// Two outputs in one group follow each other; a gradient on its way back is on the wire meanwhile.
TEST(Simulate, ChannelsAreFullDuplex) {
  using enum Kind;
  const Schedule schedule{"duplex",
                          3,
                          {0, 1},
                          {{{kForward, 0, 0},
                            {kSendOutput, 0, 0},
                            {kForward, 0, 1},
                            {kForward, 0, 2},
                            {kSendOutput, 0, 1},
                            {kSendOutput, 0, 2},
                            {kRecvGradient, 0, 0},
                            {kBackward, 0, 0},
                            {kRecvGradient, 0, 1},
                            {kBackward, 0, 1},
                            {kRecvGradient, 0, 2},
                            {kBackward, 0, 2}},
                           {{kRecvInput, 1, 0},
                            {kForward, 1, 0},
                            {kBackward, 1, 0},
                            {kSendGradient, 1, 0},
                            {kRecvInput, 1, 1},
                            {kRecvInput, 1, 2},
                            {kForward, 1, 1},
                            {kBackward, 1, 1},
                            {kSendGradient, 1, 1},
                            {kForward, 1, 2},
                            {kBackward, 1, 2},
                            {kSendGradient, 1, 2}}}};
  Costs costs;
  costs.latency = 1;
  const Simulation result = simulate(schedule, costs);
  const auto times = [&](const Action& action) {
    for (const Span& span : result.timeline)
      if (span.action == action) return std::pair(span.begin, span.end);
    return std::pair(-1.0, -1.0);
  };
  // Rank 1: the first forward at 2 to 3, its backward to 5; rank 0 waits from 3 on.
  EXPECT_EQ(times({kSendOutput, 0, 1}), std::pair(5.0, 6.0));
  EXPECT_EQ(times({kSendOutput, 0, 2}), std::pair(6.0, 7.0));
  EXPECT_EQ(times({kSendGradient, 1, 0}), std::pair(5.0, 6.0));
  EXPECT_EQ(times({kForward, 1, 1}), std::pair(7.0, 8.0));  // after the whole group
}

// A step of 1F1B hides nothing of its bubble in the next, one of ZB-V all but the shift of ranks;
// waiting for all gradients brings the bubble back.
TEST(Simulate, StepsAndSynchronisedUpdates) {
  const Schedule plain = with_updates(one_forward_one_backward(4, 8)), v = with_updates(zb_v(4, 8));
  const double one = simulate(plain).seconds;
  EXPECT_NEAR(simulate(plain, {}, {.steps = 5}).seconds, 5 * one, 1e-9);
  EXPECT_NEAR(simulate(v, {}, {.steps = 5}).seconds, 5 * 48 + 3, 1e-9);
  const SimulateOptions together{.steps = 5, .synchronise_updates = true};
  EXPECT_NEAR(simulate(v, {}, together).seconds, 5 * (48 + 3), 1e-9);
  EXPECT_NEAR(simulate(zb_v(4, 8), {}, together).seconds, 5 * (48 + 3), 1e-9);
}

TEST(Simulate, UpdatesThatWaitForEachOtherInACircle) {
  Schedule schedule = with_updates(interleaved(2, 2, 2));
  EXPECT_GT(simulate(schedule, {}, {.synchronise_updates = true}).seconds, 0);
  std::vector<Action>& list = schedule.actions[1];  // U3 right behind R3
  list.insert(std::find(list.begin(), list.end(), Action{Kind::kReduce, 3, 0}) + 1,
              {Kind::kUpdate, 3, 0});
  list.erase(list.end() - 2);
  EXPECT_NO_THROW(check(schedule));
  EXPECT_GT(simulate(schedule).seconds, 0);
  expect_contains(
      error_of<ValueError>([&] { simulate(schedule, {}, {.synchronise_updates = true}); }),
      {"does not end", "rank 1 waits at position", "for all gradients, before its updates",
       "rank 0 waits at position"});
}

TEST(Simulate, NothingBeginsBeforeWhatItNeeds) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const Schedule schedule = testing::random_schedule(seed);
    Costs costs;
    costs.latency = 0.3;
    const Simulation result = simulate(schedule, costs);
    std::vector<double> free(size_t(schedule.ranks()));
    std::map<Action, Span> spans;
    for (const Span& span : result.timeline) spans[span.action] = span;
    for (int rank = 0; rank < schedule.ranks(); ++rank) {
      for (const Action& action : schedule.actions[size_t(rank)]) {
        ASSERT_EQ(spans.count(action), 1u);
        const Span& span = spans[action];
        if (is_message(action.kind) || action.kind == Kind::kReduce) continue;
        EXPECT_GE(span.begin, free[size_t(rank)]);
        free[size_t(rank)] = span.end;
        if (action.kind == Kind::kForward && action.stage > 0) {
          const double transfer =
              schedule.rank_of_stage[size_t(action.stage - 1)] == rank ? 0 : 0.3;
          const Action before{Kind::kForward, action.stage - 1, action.micro_batch};
          EXPECT_GE(span.begin + 1e-12, spans[before].end + transfer);
        }
      }
    }
  }
}

TEST(Simulate, RefusesWhatItCannotSimulate) {
  Schedule schedule = one_batch();
  Costs costs;
  costs.stages.resize(3);
  expect_contains(error_of<ValueError>([&] { simulate(schedule, costs); }),
                  {"entries for 3 stages", "has 2"});
  costs = {};
  costs.latency = -1;
  expect_contains(error_of<ValueError>([&] { simulate(schedule, costs); }), {"latency is -1"});
  costs = {};
  costs.stages[0].weights = std::numeric_limits<double>::quiet_NaN();
  expect_contains(error_of<ValueError>([&] { simulate(schedule, costs); }), {"weights is nan"});
  costs = {};
  costs.bytes_per_second = 0;
  expect_contains(error_of<ValueError>([&] { simulate(schedule, costs); }), {"bytes_per_second"});
  expect_contains(error_of<ValueError>([&] { simulate(schedule, {}, {.steps = 0}); }), {"0 steps"});
  schedule.actions[0].pop_back();
  expect_contains(error_of<ValueError>([&] { simulate(schedule); }), {"B0.0 is missing"});
}

}  // namespace
}  // namespace catena::parallel::pipeline
