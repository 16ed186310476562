#include "list_scheduler.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "compute_lists.h"

namespace catena::parallel::pipeline {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class ListScheduler {
 public:
  ListScheduler(const std::vector<int>& rank_of_stage, int micro_batches, const Costs& costs,
                const std::vector<double>& limits, const Precedence& precedence)
      : lists_("zero bubble", rank_of_stage, micro_batches),
        costs_(costs),
        limits_(limits),
        precedence_(precedence),
        stages_of_(limits.size()),
        free_(limits.size()),
        held_(limits.size()) {
    s_.micro_batches = micro_batches;
    s_.rank_of_stage = rank_of_stage;
    for (int stage = 0; stage < s_.stages(); ++stage)
      stages_of_[size_t(rank_of_stage[size_t(stage)])].push_back(stage);
    const size_t size = rank_of_stage.size() * size_t(micro_batches);
    forward_.assign(size, kNever);
    inputs_.assign(size, kNever);
  }

  std::optional<Schedule> make();

 private:
  int rank_of(int stage) const { return s_.rank_of_stage[size_t(stage)]; }
  size_t index(int stage, int k) const {
    return size_t(stage) * size_t(s_.micro_batches) + size_t(k);
  }
  double arrival(double made, Kind send, int from, int to, int k) const {
    return rank_of(from) == rank_of(to) ? made : made + seconds_of(costs_, s_, {send, from, k});
  }
  double ready(Kind kind, int stage) const;
  bool has_room(int stage) const;
  bool is_better(const Action& a, const Action& b) const;
  int class_of(Kind kind) const;
  void begin(const Action& action, double now);
  bool begin_some(double now);
  double next_moment(double now) const;

  ListMaker lists_;
  Schedule s_;  // for its sizes
  const Costs& costs_;
  const std::vector<double>& limits_;
  const Precedence precedence_;
  std::vector<std::vector<int>> stages_of_;
  std::vector<double> free_, held_;       // of each rank: until when it computes, bytes
  std::vector<double> forward_, inputs_;  // ends, of each stage and micro-batch
};

// When the next computation of that kind and stage could begin, were its rank free.
double ListScheduler::ready(Kind kind, int stage) const {
  const int k = lists_.count(kind, stage);
  if (k == s_.micro_batches) return kNever;
  if (kind == Kind::kBackwardWeights) return inputs_[index(stage, k)];
  if (kind == Kind::kForward)
    return stage == 0
               ? 0
               : arrival(forward_[index(stage - 1, k)], Kind::kSendOutput, stage - 1, stage, k);
  const double own = forward_[index(stage, k)];
  if (stage + 1 == s_.stages()) return own;
  return std::max(own,
                  arrival(inputs_[index(stage + 1, k)], Kind::kSendGradient, stage + 1, stage, k));
}

// Room for a forward, and beyond it for one of each later stage of the rank, so that micro-batches
// that are on their way can go on.
bool ListScheduler::has_room(int stage) const {
  const size_t rank = size_t(rank_of(stage));
  double needed = held_[rank];
  for (const int other : stages_of_[rank])
    if (other >= stage) needed += costs_.of(other).activations;
  return needed <= limits_[rank] * (1 + 1e-9);
}

int ListScheduler::class_of(Kind kind) const {
  if (kind == Kind::kBackwardWeights) return 2;
  return (kind == Kind::kForward) == precedence_.forward_first ? 0 : 1;
}

bool ListScheduler::is_better(const Action& a, const Action& b) const {
  if (a.kind != b.kind) return class_of(a.kind) < class_of(b.kind);
  if (a.kind == Kind::kBackwardWeights && a.micro_batch != b.micro_batch)
    return a.micro_batch < b.micro_batch;
  const bool later = a.kind != Kind::kForward || precedence_.later_first;
  return later ? a.stage > b.stage : a.stage < b.stage;
}

void ListScheduler::begin(const Action& action, double now) {
  const size_t rank = size_t(rank_of(action.stage));
  const StageCosts& stage = costs_.of(action.stage);
  lists_.add(action.kind, action.stage);
  const double end = free_[rank] = now + seconds_of(costs_, s_, action);
  if (action.kind == Kind::kForward) {
    forward_[index(action.stage, action.micro_batch)] = end;
    held_[rank] += stage.activations;
  } else if (action.kind == Kind::kBackwardInputs) {
    inputs_[index(action.stage, action.micro_batch)] = end;
    held_[rank] += stage.for_weights - stage.activations;
  } else {
    held_[rank] -= stage.for_weights;
  }
}

bool ListScheduler::begin_some(double now) {
  bool any = false;
  for (size_t rank = 0; rank < stages_of_.size(); ++rank) {
    if (free_[rank] > now) continue;
    std::optional<Action> best;
    for (const int stage : stages_of_[rank]) {
      for (const Kind kind : {Kind::kForward, Kind::kBackwardInputs, Kind::kBackwardWeights}) {
        if (ready(kind, stage) > now || (kind == Kind::kForward && !has_room(stage))) continue;
        const Action action{kind, stage, lists_.count(kind, stage)};
        if (!best || is_better(action, *best)) best = action;
      }
    }
    if (!best) continue;
    begin(*best, now);
    any = true;
  }
  return any;
}

double ListScheduler::next_moment(double now) const {
  double next = kNever;
  const auto consider = [&](double time) {
    if (time > now) next = std::min(next, time);
  };
  for (const double time : free_) consider(time);
  for (int stage = 0; stage < s_.stages(); ++stage)
    for (const Kind kind : {Kind::kForward, Kind::kBackwardInputs, Kind::kBackwardWeights})
      consider(ready(kind, stage));
  return next;
}

std::optional<Schedule> ListScheduler::make() {
  const int actions = 3 * s_.stages() * s_.micro_batches;
  for (double now = 0; now < kNever; now = next_moment(now))
    while (begin_some(now)) continue;
  Schedule result = lists_.take();
  int made = 0;
  for (const std::vector<Action>& list : result.actions) made += static_cast<int>(list.size());
  if (made < actions) return std::nullopt;
  return result;
}

}  // namespace

std::optional<Schedule> schedule_lists(const std::vector<int>& rank_of_stage, int micro_batches,
                                       const Costs& costs, const std::vector<double>& limits,
                                       const Precedence& precedence) {
  return ListScheduler(rank_of_stage, micro_batches, costs, limits, precedence).make();
}

}  // namespace catena::parallel::pipeline
