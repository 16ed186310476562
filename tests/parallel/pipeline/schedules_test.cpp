#include "catena/parallel/pipeline/schedules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "catena/core/error.h"
#include "catena/parallel/pipeline/simulate.h"
#include "error_text.h"
#include "parallel/pipeline/random_schedules.h"

namespace catena::parallel::pipeline {
namespace {

struct Known {
  const char* name;
  std::function<Schedule(int ranks, int micro_batches)> make;
};

const std::vector<Known>& known_schedules() {
  static const std::vector<Known> known{
      {"gpipe", gpipe},
      {"1f1b", [](int p, int m) { return one_forward_one_backward(p, m); }},
      {"1f1b ahead", [](int p, int m) { return one_forward_one_backward(p, m, 2); }},
      {"interleaved 1", [](int p, int m) { return interleaved(p, 1, m); }},
      {"interleaved 2", [](int p, int m) { return interleaved(p, 2, m); }},
      {"interleaved 3", [](int p, int m) { return interleaved(p, 3, m); }},
      {"interleaved 2, larger groups", [](int p, int m) { return interleaved(p, 2, m, p + 1); }},
      {"interleaved 2, twice the groups", [](int p, int m) { return interleaved(p, 2, m, 2 * p); }},
      {"interleaved 3, twice the groups", [](int p, int m) { return interleaved(p, 3, m, 2 * p); }},
      {"zero bubble", [](int p, int m) { return zero_bubble(p, m); }},
      {"zb-v", zb_v},
      {"zero bubble with limits",
       [](int p, int m) { return zero_bubble(stages_in_order(p), m, Costs{}); }}};
  return known;
}

// Stages of which there are several on a rank take their share of its time and memory.
Costs unit_costs(int stages_per_rank) {
  const double part = 1.0 / stages_per_rank;
  Costs costs;
  costs.stages = {{.forward = part,
                   .backward = 2 * part,
                   .inputs = part,
                   .weights = part,
                   .activations = part,
                   .for_weights = part}};
  return costs;
}

TEST(Schedules, AllAreValidForAllCounts) {
  for (const Known& known : known_schedules()) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      for (int micro_batches = 1; micro_batches <= 17; ++micro_batches) {
        const Schedule schedule = known.make(ranks, micro_batches);
        EXPECT_EQ(schedule.ranks(), ranks);
        EXPECT_EQ(schedule.micro_batches, micro_batches);
        EXPECT_NO_THROW(check(schedule)) << known.name << to_string(schedule);
        EXPECT_NO_THROW(check(with_updates(schedule))) << known.name;
      }
    }
  }
}

TEST(Schedules, Placements) {
  EXPECT_EQ(stages_in_order(3), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(stages_in_rounds(2, 3), (std::vector<int>{0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(stages_in_v(3), (std::vector<int>{0, 1, 2, 2, 1, 0}));
}

TEST(Schedules, ForwardsThenBackwardsOrInTurns) {
  EXPECT_EQ(to_string(gpipe(2, 3)),
            "rank 0: F0.0 >0.0 F0.1 >0.1 F0.2 >0.2 {0.0 B0.0 {0.1 B0.1 {0.2 B0.2\n"
            "rank 1: <1.0 F1.0 <1.1 F1.1 <1.2 F1.2 B1.0 }1.0 B1.1 }1.1 B1.2 }1.2\n");
  // Send_forward with receive_backward and send_backward with receive_forward are one group each.
  EXPECT_EQ(to_string(one_forward_one_backward(2, 3)),
            "rank 0: F0.0 >0.0 F0.1 >0.1 {0.0 B0.0 F0.2 >0.2 {0.1 B0.1 {0.2 B0.2\n"
            "rank 1: <1.0 F1.0 B1.0 }1.0 <1.1 F1.1 B1.1 }1.1 <1.2 F1.2 B1.2 }1.2\n");
}

TEST(Schedules, BubblesOfGpipeAnd1F1B) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 1; m <= 17; ++m) {
      const double bubble = double(p - 1) / (m + p - 1);
      for (const Schedule& schedule : {gpipe(p, m), one_forward_one_backward(p, m)}) {
        const Simulation result = simulate(schedule);
        EXPECT_NEAR(result.bubble(), bubble, 1e-12) << schedule.name << p << ' ' << m;
        EXPECT_EQ(result.messages, int64_t(2) * (p - 1) * m);
        for (int rank = 0; rank < p; ++rank)
          EXPECT_EQ(result.peak_bytes[size_t(rank)],
                    schedule.name == "gpipe" ? m : std::min(p - rank, m));
      }
    }
  }
}

TEST(Schedules, BubbleOfInterleaved) {
  for (int p = 2; p <= 8; ++p) {
    for (int v = 2; v <= 4; ++v) {
      for (int groups = 1; groups <= 3; ++groups) {
        const int m = groups * p;
        const Simulation result = simulate(interleaved(p, v, m), unit_costs(v));
        const double over = double(p - 1) / (v * m);
        EXPECT_NEAR(result.seconds / result.ideal_seconds(), 1 + over, 1e-9) << p << v << m;
      }
    }
  }
  EXPECT_LE(simulate(interleaved(4, 2, 16), unit_costs(2)).seconds / 48, 1.09 + 0.005);
  // Numbers that do not divide cost at most what the next one that does costs.
  for (int m = 1; m <= 17; ++m)
    EXPECT_LE(simulate(interleaved(4, 2, m), unit_costs(2)).seconds,
              simulate(interleaved(4, 2, (m + 3) / 4 * 4), unit_costs(2)).seconds);
}

TEST(Schedules, ZeroBubbleTakesAThirdOfTheBubbleAndNoMoreMemory) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = p; m <= 17; ++m) {
      const Simulation h1 = simulate(zero_bubble(p, m));
      EXPECT_NEAR(h1.seconds, 3 * m + (p - 1), 1e-9) << p << ' ' << m;  // 1F1B: 3 m + 3 (p - 1)
      EXPECT_LE(h1.largest_peak(), p);
    }
    for (int m = 1; m < p; ++m) EXPECT_LE(simulate(zero_bubble(p, m)).largest_peak(), m);
  }
}

// From its first action to its last no rank waits, so that several steps cost what the shift of the
// ranks costs once.
TEST(Schedules, ZbVHasNoBubble) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 2 * p; m <= 17; ++m) {
      for (const int steps : {1, 10}) {
        const Simulation v = simulate(zb_v(p, m), unit_costs(2), {.steps = steps});
        EXPECT_NEAR(v.seconds, steps * 3.0 * m + 0.5 * (p - 1), 1e-9) << p << ' ' << m;
        EXPECT_LE(v.largest_peak(), p);
      }
    }
    for (int m = 1; m < 2 * p; ++m)
      EXPECT_LE(simulate(zb_v(p, m), unit_costs(2)).largest_peak(), p) << p << ' ' << m;
  }
}

// Times as a model has them.
Costs uneven_costs(int stages, unsigned seed) {
  std::mt19937 random(seed);
  const auto around = [&](double value) {
    return value * std::uniform_real_distribution<double>(0.7, 1.3)(random);
  };
  Costs costs;
  costs.stages.clear();
  for (int stage = 0; stage < stages; ++stage)
    costs.stages.push_back({.forward = around(1),
                            .backward = around(2),
                            .inputs = around(1.1),
                            .weights = around(0.9),
                            .activations = around(1),
                            .for_weights = around(0.6),
                            .output = 1});
  costs.latency = 0.02;
  costs.bytes_per_second = 20;
  return costs;
}

TEST(Schedules, ZeroBubbleForMeasuredTimesKeepsItsLimits) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const int p = 2 + int(seed % 4), m = 3 + int(seed);
    const Costs costs = uneven_costs(p, seed);
    const std::vector<double> limits(size_t(p), p * 1.5);
    const Schedule schedule =
        zero_bubble(stages_in_order(p), m, costs, {.limits = limits, .steps = 1});
    check(schedule);
    Costs memory = costs;
    for (StageCosts& stage : memory.stages) stage.output = 0;
    EXPECT_LE(simulate(schedule, memory).largest_peak(), p * 1.5 + 1e-9);
    EXPECT_LE(simulate(schedule, costs).seconds,
              simulate(with_messages(zero_bubble(p, m), costs), costs).seconds * (1 + 1e-9));
  }
  const Simulation ten =
      simulate(zero_bubble(stages_in_order(4), 16, {}), unit_costs(1), {.steps = 10});
  EXPECT_LE(ten.seconds, 1.02 * ten.ideal_seconds());
  expect_contains(error_of<ValueError>([] {
                    zero_bubble({0, 1}, 4, {}, {.limits = {0.5, 4}});
                  }),
                  {"zero_bubble", "within its limit", "raise"});
}

// Micro-batches that are there keep room to come back.
TEST(Schedules, ZeroBubbleInLittleMemoryEnds) {
  for (int p = 2; p <= 5; ++p) {
    for (int limit = 2; limit <= 2 * p; ++limit) {
      const std::vector<double> limits(size_t(p), limit);
      const Schedule schedule =
          zero_bubble(stages_in_v(p), 3 * p, {}, {.limits = limits, .steps = 1});
      EXPECT_LE(simulate(schedule).largest_peak(), limit) << p << ' ' << limit;
    }
  }
}

TEST(Schedules, CountsThatCannotBe) {
  expect_contains(error_of<ValueError>([] { gpipe(0, 1); }), {"gpipe: 0 ranks"});
  expect_contains(error_of<ValueError>([] { one_forward_one_backward(2, 0); }),
                  {"one_forward_one_backward: 0 micro-batches"});
  expect_contains(error_of<ValueError>([] { interleaved(2, 0, 2); }),
                  {"interleaved: 0 stages on each rank"});
  expect_contains(error_of<ValueError>([] { interleaved(4, 2, 8, 3); }),
                  {"interleaved: groups of 3 micro-batches for 4 ranks"});
  expect_contains(error_of<ValueError>([] { zero_bubble(2, -1); }), {"zero_bubble: -1"});
  expect_contains(error_of<ValueError>([] { zb_v(0, 2); }), {"zb_v: 0 ranks"});
  expect_contains(error_of<ValueError>([] { zero_bubble({}, 2, {}); }), {"rank_of_stage is empty"});
  expect_contains(error_of<ValueError>([] {
                    zero_bubble({0, 1}, 2, {}, {.limits = {1}});
                  }),
                  {"limits for 1 ranks; the stages are on 2"});
}

// What users write: lists of computations in any order that can end.
TEST(Schedules, RandomListsOfComputationsGetMessages) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    Schedule lists = testing::random_schedule(seed);
    for (std::vector<Action>& list : lists.actions)
      std::erase_if(list, [](const Action& a) { return is_message(a.kind); });
    for (const Costs& costs : {Costs{}, uneven_costs(lists.stages(), seed)}) {
      const Schedule schedule = with_messages(lists, costs);
      ASSERT_NO_THROW(check(schedule)) << to_string(schedule);
      Schedule back = schedule;
      for (std::vector<Action>& list : back.actions)
        std::erase_if(list, [](const Action& a) { return is_message(a.kind); });
      EXPECT_EQ(back.actions, lists.actions);
    }
  }
}

// Places planned for the costs are never worse than those for unit costs, and sometimes better.
TEST(Schedules, PlacesOfMessagesAreTheBestForTheCosts) {
  int better = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Schedule lists = testing::random_schedule(seed);
    for (const Transfers transfers : {Transfers::kOverlap, Transfers::kBlock}) {
      Costs costs = uneven_costs(lists.stages(), seed);
      costs.transfers = transfers;
      const double planned = simulate(with_messages(lists, costs), costs).seconds;
      const double plain = simulate(with_messages(lists), costs).seconds;
      EXPECT_LE(planned, plain) << seed;
      better += planned < plain * 0.999;
    }
  }
  EXPECT_GT(better, 20);
}

// A stage that takes twice or four times as long as the others moves the best places.
TEST(Schedules, PlacesFollowTheTimesOfStages) {
  Costs costs;
  costs.stages.assign(4, {});
  costs.stages[0] = {.forward = 2, .backward = 4};
  costs.transfers = Transfers::kBlock;
  EXPECT_NEAR(simulate(with_messages(interleaved(2, 2, 8), costs), costs).seconds, 74, 1e-9);
  costs.stages.assign(4, {});
  costs.stages[2] = {.forward = 4, .backward = 8};
  costs.latency = 0.5;
  costs.transfers = Transfers::kOverlap;
  EXPECT_NEAR(simulate(with_messages(one_forward_one_backward(4, 8), costs), costs).seconds, 107,
              1e-9);
}

// Where transfers take time and overlap.
TEST(Schedules, EarlyMessagesAndForwardsHideTransfers) {
  Costs costs = unit_costs(2);
  costs.latency = 0.2;
  const Schedule plain = interleaved(4, 2, 16), planned = with_messages(plain, costs);
  EXPECT_LT(simulate(planned, costs).seconds, 0.99 * simulate(plain, costs).seconds);
  costs = unit_costs(1);
  costs.latency = 0.1;
  const double one = simulate(one_forward_one_backward(4, 16), costs).seconds;
  const Simulation two = simulate(with_messages(one_forward_one_backward(4, 16, 2), costs), costs);
  EXPECT_LT(two.seconds, 0.97 * one);
  EXPECT_EQ(two.peak_bytes, (std::vector<double>{7, 5, 3, 1}));
}

// Larger groups of interleaved micro-batches hide messages, for the memory that the header states.
TEST(Schedules, LargerGroupsHideTheMessagesOfInterleaved) {
  for (const int p : {2, 3, 4}) {
    for (const int v : {2, 3}) {
      for (const double latency : {0.1, 0.2, 0.4, 0.6}) {
        Costs costs = unit_costs(v);
        costs.latency = latency / v;
        const int m = 4 * p;
        const Simulation small = simulate(with_messages(interleaved(p, v, m), costs), costs);
        const Simulation large = simulate(with_messages(interleaved(p, v, m, 2 * p), costs), costs);
        const double most = latency < 0.4 ? 1.01 : 1 + 1e-9;  // short messages need no room
        EXPECT_LE(large.seconds, small.seconds * most) << p << ' ' << v << ' ' << latency;
        EXPECT_LE(large.largest_peak(), small.largest_peak() + (v - 1) * p * (1.0 / v) + 1e-9)
            << p << v << latency;
      }
    }
  }
  Costs costs = unit_costs(2);
  costs.latency = 0.2;
  EXPECT_LT(simulate(with_messages(interleaved(4, 2, 16, 8), costs), costs).seconds,
            0.95 * simulate(with_messages(interleaved(4, 2, 16), costs), costs).seconds);
  EXPECT_EQ(interleaved(4, 2, 16, 4).actions, interleaved(4, 2, 16).actions);
}

TEST(Schedules, ListsThatCannotHaveMessages) {
  Schedule circle{"circle", 1, {0, 1}, {{}, {}}};
  circle.actions[0] = {{Kind::kForward, 0, 0}, {Kind::kBackward, 0, 0}};
  circle.actions[1] = {{Kind::kForward, 1, 0}, {Kind::kBackward, 1, 0}};
  check(with_messages(circle));
  EXPECT_EQ(with_messages(with_messages(circle)).actions, with_messages(circle).actions);
  std::swap(circle.actions[1][0], circle.actions[1][1]);
  expect_contains(error_of<ValueError>([&] { with_messages(circle); }),
                  {"rank 1, position 0 (B1.0)", "it needs F1.0, its forward"});
  // Rank 0 has stages 0 and 2 and does them in the wrong order.
  Schedule waits{"waits", 2, {0, 1, 0}, {{}, {}}};
  for (int k = 0; k < 2; ++k) {
    waits.actions[1].push_back({Kind::kForward, 1, k});
    waits.actions[0].push_back({Kind::kForward, 2, k});
    waits.actions[0].push_back({Kind::kForward, 0, k});
  }
  for (int k = 0; k < 2; ++k) {
    waits.actions[0].push_back({Kind::kBackward, 2, k});
    waits.actions[1].push_back({Kind::kBackward, 1, k});
    waits.actions[0].push_back({Kind::kBackward, 0, k});
  }
  expect_contains(error_of<ValueError>([&] { with_messages(waits); }),
                  {"schedule 'waits'", "no messages can end it",
                   "rank 0 at position 0 for what F2.0 needs, rank 1 at position 0"});
}

TEST(Schedules, UpdatesFollowTheLastGradients) {
  const Schedule schedule = with_updates(interleaved(2, 2, 2));
  const std::vector<Action>& list = schedule.actions[1];
  const auto at = [&](const Action& action) {
    return std::find(list.begin(), list.end(), action) - list.begin();
  };
  // Behind the group with the gradient that the other rank waits for, and before the other stage's
  // backwards.
  EXPECT_EQ(at({Kind::kSendGradient, 3, 1}), at({Kind::kReduce, 3, 0}) - 2) << to_string(schedule);
  EXPECT_EQ(at({Kind::kBackward, 1, 0}), at({Kind::kReduce, 3, 0}) + 1);
  EXPECT_EQ(at({Kind::kUpdate, 3, 0}), long(list.size()) - 2);
  EXPECT_EQ(at({Kind::kUpdate, 1, 0}), long(list.size()) - 1);
  check(schedule);
  const Schedule alone = with_updates(gpipe(1, 2), false);
  EXPECT_EQ(to_string(alone), "rank 0: F0.0 F0.1 B0.0 B0.1 U0\n");
  expect_contains(error_of<ValueError>([&] { with_updates(alone); }),
                  {"with_updates", "already has U0"});
}

}  // namespace
}  // namespace catena::parallel::pipeline
