#include "catena/parallel/pipeline/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <random>
#include <set>

#include "catena/core/error.h"
#include "catena/parallel/pipeline/schedules.h"
#include "catena/parallel/pipeline/simulate.h"
#include "error_text.h"
#include "parallel/pipeline/random_schedules.h"

namespace catena::parallel::pipeline {
namespace {

std::string refusal(const Schedule& schedule) {
  return error_of<ValueError>([&] { check(schedule); });
}

TEST(Schedule, ActionsAndSchedulesAsText) {
  EXPECT_EQ(to_string(Action{Kind::kForward, 2, 5}), "F2.5");
  std::string letters;
  for (int kind = 0; kind < 10; ++kind) letters += to_string(Action{Kind(kind), 1, 0})[0];
  EXPECT_EQ(letters, "FBIW><}{RU");
  EXPECT_EQ(to_string(Action{Kind::kUpdate, 3, 0}), "U3");
  const Schedule schedule{"x", 1, {0, 0}, {{{Kind::kForward, 0, 0}, {Kind::kForward, 1, 0}}, {}}};
  EXPECT_EQ(to_string(schedule), "rank 0: F0.0 F1.0\nrank 1:\n");
}

TEST(Schedule, OtherEndsOfMessages) {
  EXPECT_EQ(peer_stage({Kind::kSendOutput, 2, 0}), 3);
  EXPECT_EQ(peer_stage({Kind::kRecvInput, 2, 0}), 1);
  EXPECT_EQ(peer_stage({Kind::kSendGradient, 2, 0}), 1);
  EXPECT_EQ(peer_stage({Kind::kRecvGradient, 2, 0}), 3);
  expect_contains(error_of<ValueError>([] {
                    peer_stage({Kind::kReduce, 2, 0});
                  }),
                  {"peer_stage", "R2", "not a send or a receive"});
  for (int kind = 0; kind < 10; ++kind) {
    EXPECT_EQ(is_message(Kind(kind)), kind >= 4 && kind < 8) << kind;
    EXPECT_EQ(is_send(Kind(kind)), kind == 4 || kind == 6) << kind;
  }
}

// Each rule, broken in 1F1B on two ranks:
// rank 0: F0.0 >0.0 F0.1 >0.1 {0.0 B0.0 {0.1 B0.1 R0 U0
// rank 1: <1.0 F1.0 B1.0 }1.0 <1.1 F1.1 B1.1 }1.1 R1 U1
Schedule small() { return with_updates(one_forward_one_backward(2, 2)); }

TEST(Schedule, SizesThatCannotBe) {
  EXPECT_EQ(refusal(small()), "no error");
  Schedule none = small();
  none.micro_batches = 0;
  expect_contains(refusal(none), {"schedule '1f1b'", "0 micro-batches"});
  none = small();
  none.rank_of_stage.clear();
  expect_contains(refusal(none), {"no stages"});
  none = small();
  none.actions.clear();
  expect_contains(refusal(none), {"no ranks"});
  none = small();
  none.rank_of_stage[1] = 2;
  expect_contains(refusal(none), {"stage 1 is on rank 2", "2 ranks"});
}

TEST(Schedule, ActionsThatCannotBe) {
  const auto with = [](const Action& action) {
    Schedule schedule = small();
    schedule.actions[0].insert(schedule.actions[0].begin() + 1, action);
    return refusal(schedule);
  };
  expect_contains(with({Kind::kForward, 0, 2}), {"rank 0, position 1 (F0.2)", "no micro-batch 2"});
  expect_contains(with({Kind::kForward, -1, 0}), {"position 1", "no stage -1", "has 2"});
  expect_contains(with({Kind::kForward, 1, 0}), {"position 1 (F1.0)", "stage 1 is on rank 1"});
  expect_contains(with({Kind(10), 0, 0}), {"its kind is 10"});
  expect_contains(with({Kind::kRecvInput, 0, 0}), {"stage 0 is the first one"});
  expect_contains(with({Kind::kReduce, 0, 1}), {"no micro-batch 1"});
  expect_contains(with({Kind::kForward, 0, 1}), {"twice", "first at position 1"});
  Schedule last = small();
  last.actions[1].push_back({Kind::kSendOutput, 1, 0});
  expect_contains(refusal(last), {"rank 1", "stage 1 is the last one"});
  Schedule alone{"v", 1, {0, 0}, {{{Kind::kForward, 0, 0}, {Kind::kSendOutput, 0, 0}}}};
  expect_contains(refusal(alone), {"stages 0 and 1 are both on rank 0", "leave it out"});
}

TEST(Schedule, GradientsInOneForm) {
  Schedule schedule = small();
  schedule.actions[1].push_back({Kind::kBackwardInputs, 1, 0});
  expect_contains(refusal(schedule), {"I1.0", "B1.0 makes the same gradients"});
  schedule = small();
  std::replace(schedule.actions[1].begin(), schedule.actions[1].end(),
               Action{Kind::kBackward, 1, 0}, Action{Kind::kBackwardWeights, 1, 0});
  expect_contains(refusal(schedule), {"I1.0 is missing", "only the first stage"});
  std::replace(schedule.actions[1].begin(), schedule.actions[1].end(),
               Action{Kind::kBackwardWeights, 1, 0}, Action{Kind::kBackwardInputs, 1, 0});
  expect_contains(refusal(schedule), {"rank 1: W1.0 is missing"});
  schedule = small();
  std::replace(schedule.actions[0].begin(), schedule.actions[0].end(),
               Action{Kind::kBackward, 0, 0}, Action{Kind::kBackwardWeights, 0, 0});
  EXPECT_EQ(refusal(schedule), "no error");
}

TEST(Schedule, UpdatesAfterGradients) {
  Schedule schedule = small();
  std::swap(schedule.actions[0][8], schedule.actions[0][9]);  // R0 U0
  expect_contains(refusal(schedule), {"(U0)", "it needs R0", "comes later, at position 9"});
  schedule = small();
  std::swap(schedule.actions[0][7], schedule.actions[0][8]);  // B0.1 R0
  expect_contains(refusal(schedule), {"(R0)", "it needs B0.1", "comes later, at position 8"});
  schedule = small();
  schedule.actions[0].erase(schedule.actions[0].begin() + 8);
  EXPECT_EQ(refusal(schedule), "no error");
}

// Moves one action of a rank, so that it comes behind (or before) another.
std::string with_move(size_t rank, size_t from, size_t to) {
  Schedule schedule = small();
  std::vector<Action>& list = schedule.actions[rank];
  const Action action = list[from];
  list.erase(list.begin() + long(from));
  list.insert(list.begin() + long(to), action);
  return refusal(schedule);
}

TEST(Schedule, OrdersThatCannotBe) {
  const char* const unmade = "which makes what is sent, which comes later";
  expect_contains(with_move(0, 1, 0), {">0.0", unmade});
  expect_contains(with_move(1, 3, 2), {"}1.0", unmade});
  expect_contains(with_move(1, 0, 1), {"F1.0", "<1.0", "which comes later"});
  expect_contains(with_move(0, 4, 5), {"B0.0", "{0.0", "which comes later"});
  const char* const ascending = "in ascending order of micro-batches";
  Schedule schedule = small();
  std::swap(schedule.actions[0][0], schedule.actions[0][2]);  // F0.1 before F0.0
  expect_contains(refusal(schedule), {ascending});
  schedule = small();
  std::swap(schedule.actions[1][2], schedule.actions[1][6]);  // B1.1 before B1.0
  expect_contains(refusal(schedule), {ascending});
  schedule = zero_bubble(2, 2);
  schedule.actions[1] = {{Kind::kRecvInput, 1, 0},       {Kind::kForward, 1, 0},
                         {Kind::kRecvInput, 1, 1},       {Kind::kForward, 1, 1},
                         {Kind::kBackwardInputs, 1, 1},  {Kind::kBackwardInputs, 1, 0},
                         {Kind::kSendGradient, 1, 0},    {Kind::kSendGradient, 1, 1},
                         {Kind::kBackwardWeights, 1, 0}, {Kind::kBackwardWeights, 1, 1}};
  expect_contains(refusal(schedule), {"gradients of a stage's inputs go in ascending order"});
  schedule = with_updates(zero_bubble(2, 2));
  std::vector<Action>& list = schedule.actions[1];
  const auto inputs = std::find(list.begin(), list.end(), Action{Kind::kBackwardInputs, 1, 0}),
             weights = std::find(list.begin(), list.end(), Action{Kind::kBackwardWeights, 1, 0});
  std::rotate(inputs, weights, weights + 1);
  expect_contains(refusal(schedule), {"what its gradients are made from, which comes later"});
  schedule = gpipe(2, 2);  // F0.0 >0.0 F0.1 >0.1 ...: both outputs in one group, the later first
  std::swap(schedule.actions[0][1], schedule.actions[0][2]);
  EXPECT_EQ(refusal(schedule), "no error");
  std::swap(schedule.actions[0][2], schedule.actions[0][3]);
  expect_contains(refusal(schedule), {"arrive in the order of their sending"});
}

// Both send before they receive, with a computation between that makes two groups of them.
TEST(Schedule, DeadlocksNameTheCycle) {
  Schedule schedule = small();
  std::vector<Action>& list = schedule.actions[0];
  std::rotate(list.begin() + 2, list.begin() + 4, list.begin() + 5);  // {0.0 before F0.1
  EXPECT_EQ(refusal(schedule), "no error");
  std::rotate(list.begin(), list.begin() + 2, list.begin() + 3);  // before F0.0
  expect_contains(refusal(schedule), {"ranks wait for each other",
                                      "rank 0 waits at position 0 for rank 1 to send ({0.0)",
                                      "rank 1 waits at position 0 for rank 0 to send (<1.0)"});
}

TEST(Schedule, RandomOnesAreValidAndSimulate) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    const Schedule schedule = testing::random_schedule(seed);
    ASSERT_EQ(refusal(schedule), "no error") << seed << '\n' << to_string(schedule);
    for (const Transfers transfers : {Transfers::kOverlap, Transfers::kBlock}) {
      Costs costs;
      costs.latency = 0.25;
      costs.transfers = transfers;
      const Simulation result = simulate(schedule, costs, {.steps = 2});
      EXPECT_GE(result.seconds, result.ideal_seconds());
      EXPECT_GE(result.bubble(), -1e-12);
    }
  }
}

using Random = std::mt19937;

size_t below(size_t n, Random& random) {
  return std::uniform_int_distribution<size_t>(0, n - 1)(random);
}

struct Place {
  size_t rank, position;
};
using Wanted = std::function<bool(const Action&)>;

std::optional<Place> choose(const Schedule& s, Random& random, const Wanted& wanted) {
  std::vector<Place> places;
  for (size_t rank = 0; rank < s.actions.size(); ++rank)
    for (size_t i = 0; i < s.actions[rank].size(); ++i)
      if (wanted(s.actions[rank][i])) places.push_back({rank, i});
  if (places.empty()) return std::nullopt;
  return places[below(places.size(), random)];
}

TEST(Schedule, GradientsThatAreAveragedAreUsed) {
  Schedule s = small();
  EXPECT_EQ(refusal(s), "no error");
  std::vector<Action>& list = s.actions[1];
  std::erase(list, Action{Kind::kUpdate, 1, 0});
  expect_contains(refusal(s), {"rank 1, position", "(R1)", "U1 is missing", "both, or neither"});
  std::erase(list, Action{Kind::kReduce, 1, 0});
  EXPECT_EQ(refusal(s), "no error");
}

// All states that ranks can come to, one step of one rank at a time: an executor that knows nothing
// of the library's.
class EveryOrder {
 public:
  explicit EveryOrder(const Schedule& schedule) : s_(schedule) {}
  struct Ends {
    bool all = false, stuck = false;  // an order that ends, one that does not
  };
  Ends explore() {
    visit(State(s_.actions.size()));
    return ends_;
  }

 private:
  struct Rank {
    size_t done = 0, posted = 0;  // actions
    auto operator<=>(const Rank&) const = default;
  };
  using State = std::vector<Rank>;

  const std::vector<Action>& list(size_t rank) const { return s_.actions[rank]; }
  // The messages of a channel among a rank's first actions.
  size_t on_channel(size_t rank, size_t count, size_t peer, bool sends) const {
    return size_t(
        std::count_if(list(rank).begin(), list(rank).begin() + long(count), [&](const Action& a) {
          return is_message(a.kind) && is_send(a.kind) == sends &&
                 size_t(s_.rank_of_stage[size_t(peer_stage(a))]) == peer;
        }));
  }
  bool arrived(const State& state, size_t rank) const {
    for (size_t peer = 0; peer < state.size(); ++peer)
      for (const bool sends : {false, true})
        if (on_channel(peer, state[peer].posted, rank, !sends) <
            on_channel(rank, state[rank].posted, peer, sends))
          return false;
    return true;
  }
  bool step(State& state, size_t rank) const {
    Rank& now = state[rank];
    if (now.posted > now.done) {
      if (!arrived(state, rank)) return false;
      now.done = now.posted;
      return true;
    }
    if (now.done == list(rank).size()) return false;
    const bool message = is_message(list(rank)[now.done].kind);
    do ++now.posted;
    while (message && now.posted < list(rank).size() && is_message(list(rank)[now.posted].kind));
    if (!message) now.done = now.posted;
    return true;
  }
  void visit(const State& state) {
    if (!seen_.insert(state).second) return;
    bool moved = false, end = true;
    for (size_t rank = 0; rank < state.size(); ++rank) {
      State next = state;
      if (step(next, rank)) {
        moved = true;
        visit(next);
      }
      end = end && state[rank].done == list(rank).size();
    }
    if (!moved) (end ? ends_.all : ends_.stuck) = true;
  }

  const Schedule& s_;
  std::set<State> seen_;
  Ends ends_;
};

// Messages moved at random: some of these schedules end.
TEST(Schedule, EndsAndDeadlocksAreThoseOfEveryOrder) {
  Random random(3);
  int ends = 0, deadlocks = 0;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    Schedule schedule = testing::random_schedule(
        seed, {.ranks = 3, .stages = 4, .micro_batches = 2, .updates = false});
    for (int move = 0; move < 3; ++move) {
      const auto at = choose(schedule, random, [](const Action& a) { return is_message(a.kind); });
      if (!at) continue;
      std::vector<Action>& list = schedule.actions[at->rank];
      const auto from = list.begin() + long(at->position),
                 to = list.begin() + long(below(list.size(), random));
      if (to < from)
        std::rotate(to, from, from + 1);
      else
        std::rotate(from, from + 1, to + 1);
    }
    const std::string text = refusal(schedule);
    const bool waits = text.find("ranks wait for each other") != std::string::npos;
    if (text != "no error" && !waits) continue;  // another rule
    const EveryOrder::Ends found = EveryOrder(schedule).explore();
    EXPECT_EQ(found.all, !waits) << to_string(schedule);
    EXPECT_EQ(found.stuck, waits) << to_string(schedule);
    ++(waits ? deadlocks : ends);
  }
  EXPECT_GT(ends, 300);
  EXPECT_GT(deadlocks, 50);
}

}  // namespace
}  // namespace catena::parallel::pipeline
