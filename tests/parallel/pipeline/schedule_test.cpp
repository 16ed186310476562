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

// A mutation of a valid schedule, with the reason for which it must be refused; nothing where this
// schedule has no place for it.
struct Mutant {
  Schedule schedule;
  const char* reason;
};
using Random = std::mt19937;
using Mutation = std::function<std::optional<Mutant>(Schedule, Random&)>;

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

bool is_needed(const Action& action) {  // on every stage
  return action.kind < Kind::kReduce &&
         !(action.kind == Kind::kBackwardInputs && action.stage == 0);
}

std::optional<Mutant> drop(Schedule s, Random& random) {
  const auto at = choose(s, random, is_needed);
  s.actions[at->rank].erase(s.actions[at->rank].begin() + long(at->position));
  return Mutant{std::move(s), "is missing"};
}

std::optional<Mutant> twice(Schedule s, Random& random) {
  const auto at = choose(s, random, [](const Action&) { return true; });
  std::vector<Action>& list = s.actions[at->rank];
  const Action action = list[at->position];
  list.insert(list.begin() + long(below(list.size() + 1, random)), action);
  return Mutant{std::move(s), "it is there twice"};
}

std::optional<Mutant> swap_micro_batches(Schedule s, Random& random) {
  const auto at = choose(s, random, [](const Action& a) { return a.kind < Kind::kSendOutput; });
  std::vector<Action>& list = s.actions[at->rank];
  Action& action = list[at->position];
  for (Action& other : list) {
    if (other.kind != action.kind || other.stage != action.stage || other == action) continue;
    std::swap(other.micro_batch, action.micro_batch);
    return Mutant{std::move(s), "in ascending order of micro-batches"};
  }
  return std::nullopt;
}

std::optional<Mutant> send_too_early(Schedule s, Random& random) {
  const auto at = choose(s, random, [](const Action& a) { return is_send(a.kind); });
  if (!at) return std::nullopt;
  std::vector<Action>& list = s.actions[at->rank];
  const auto end = list.begin() + long(at->position);
  std::rotate(list.begin(), end, end + 1);
  return Mutant{std::move(s), "which makes what is sent, which comes later"};
}

std::optional<Mutant> receive_too_late(Schedule s, Random& random) {
  const auto at =
      choose(s, random, [](const Action& a) { return is_message(a.kind) && !is_send(a.kind); });
  if (!at) return std::nullopt;
  std::vector<Action>& list = s.actions[at->rank];
  const auto begin = list.begin() + long(at->position);
  std::rotate(begin, begin + 1, list.end());
  return Mutant{std::move(s), "which comes later"};
}

std::optional<Mutant> weights_first(Schedule s, Random& random) {
  const auto at =
      choose(s, random, [](const Action& a) { return a.kind == Kind::kBackwardWeights; });
  if (!at) return std::nullopt;
  std::vector<Action>& list = s.actions[at->rank];
  const Action weights = list[at->position],
               inputs{Kind::kBackwardInputs, weights.stage, weights.micro_batch};
  const auto half = std::find(list.begin(), list.end(), inputs);
  if (half == list.end() || weights.micro_batch > 0) return std::nullopt;
  const auto end = list.begin() + long(at->position);
  std::rotate(half, end, end + 1);
  return Mutant{std::move(s), "what its gradients are made from, which comes later"};
}

std::optional<Mutant> on_wrong_rank(Schedule s, Random& random) {
  if (s.ranks() == 1) return std::nullopt;
  const auto at = choose(s, random, [](const Action&) { return true; });
  const Action action = s.actions[at->rank][at->position];
  s.actions[at->rank].erase(s.actions[at->rank].begin() + long(at->position));
  std::vector<Action>& other =
      s.actions[(at->rank + 1 + below(s.actions.size() - 1, random)) % s.actions.size()];
  other.insert(other.begin() + long(below(other.size() + 1, random)), action);
  return Mutant{std::move(s), " is on rank "};
}

std::optional<Mutant> of_wrong_stage(Schedule s, Random& random) {
  const auto at = choose(s, random, [](const Action& a) { return a.kind < Kind::kSendOutput; });
  Action& action = s.actions[at->rank][at->position];
  const int other = static_cast<int>(below(size_t(s.stages()) + 1, random));
  if (other == action.stage) return std::nullopt;
  action.stage = other;
  if (other == s.stages()) return Mutant{std::move(s), "there is no stage"};
  if (s.rank_of_stage[size_t(other)] != int(at->rank)) return Mutant{std::move(s), " is on rank "};
  const Action moved = action;
  const bool known = std::count(s.actions[at->rank].begin(), s.actions[at->rank].end(), moved) > 1;
  return Mutant{std::move(s), known ? "it is there twice" : ""};
}

std::optional<Mutant> of_no_micro_batch(Schedule s, Random& random) {
  const auto at = choose(s, random, [](const Action&) { return true; });
  s.actions[at->rank][at->position].micro_batch = s.micro_batches;
  return Mutant{std::move(s), "there is no micro-batch"};
}

std::optional<Mutant> in_another_order(Schedule s, Random& random) {
  const auto at = choose(s, random, [](const Action& a) { return is_send(a.kind); });
  if (!at) return std::nullopt;
  std::vector<Action>& list = s.actions[at->rank];
  for (size_t i = at->position; i-- > 0 && is_message(list[i].kind);) {
    const auto peer = [&](size_t k) { return s.rank_of_stage[size_t(peer_stage(list[k]))]; };
    if (!is_send(list[i].kind) || peer(i) != peer(at->position)) continue;
    std::swap(list[i], list[at->position]);
    return Mutant{std::move(s), "arrive in the order of their sending"};
  }
  return std::nullopt;
}

// The first gradient from a rank, which depends on what this rank does after it.
std::optional<Mutant> deadlock(Schedule s, Random& random) {
  const auto at = choose(s, random, [](const Action& a) { return a.kind == Kind::kRecvGradient; });
  if (!at) return std::nullopt;
  std::vector<Action>& list = s.actions[at->rank];
  const auto peer = [&](const Action& a) { return s.rank_of_stage[size_t(peer_stage(a))]; };
  const auto end = list.begin() + long(at->position);
  const bool first = std::none_of(list.begin(), end, [&](const Action& a) {
    return is_message(a.kind) && !is_send(a.kind) && peer(a) == peer(*end);
  });
  if (!first) return std::nullopt;
  std::rotate(list.begin(), end, end + 1);
  return Mutant{std::move(s), "ranks wait for each other"};
}

std::optional<Mutant> update_too_early(Schedule s, Random& random) {
  const auto at = choose(s, random, [](const Action& a) { return a.kind >= Kind::kReduce; });
  if (!at) return std::nullopt;
  std::vector<Action>& list = s.actions[at->rank];
  const auto end = list.begin() + long(at->position);
  std::rotate(list.begin(), end, end + 1);
  return Mutant{std::move(s), "the last gradients of the stage's weights, which comes later"};
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

TEST(Schedule, MutantsAreRefusedForTheirMutation) {
  const std::vector<std::pair<const char*, Mutation>> mutations{
      {"drop", drop},
      {"twice", twice},
      {"swap", swap_micro_batches},
      {"early send", send_too_early},
      {"late receive", receive_too_late},
      {"weights first", weights_first},
      {"wrong rank", on_wrong_rank},
      {"wrong stage", of_wrong_stage},
      {"no micro-batch", of_no_micro_batch},
      {"channel order", in_another_order},
      {"deadlock", deadlock},
      {"early update", update_too_early}};
  Random random(7);
  std::vector<int> refused(mutations.size());
  int total = 0;
  const int each = 1000 / int(mutations.size()) + 1;
  for (unsigned seed = 0; total < each * int(mutations.size()); ++seed) {
    ASSERT_LT(seed, 100000u);
    const size_t which = seed % mutations.size();
    if (refused[which] == each) continue;
    const Schedule valid = testing::random_schedule(seed / unsigned(mutations.size()) + 5000);
    const std::optional<Mutant> mutant = mutations[which].second(valid, random);
    if (!mutant) continue;
    const std::string text = refusal(mutant->schedule);
    ASSERT_NE(text, "no error") << mutations[which].first << seed << to_string(mutant->schedule);
    ASSERT_NE(text.find(mutant->reason), std::string::npos)
        << mutations[which].first << ": " << text << '\n'
        << to_string(mutant->schedule);
    ++refused[which];
    ++total;
  }
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
