// Schedules with backwards in two halves: ZB-H1 and ZB-V for equal times, and the best of these and
// of a list scheduler's for times as they are.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "catena/core/error.h"
#include "catena/parallel/pipeline/costs.h"
#include "catena/parallel/pipeline/schedule.h"
#include "catena/parallel/pipeline/schedules.h"
#include "catena/parallel/pipeline/simulate.h"
#include "compute_lists.h"

namespace catena::parallel::pipeline {

// Each rank delays its gradients of weights by as many micro-batches as it has fewer in flight than
// the first rank.
Schedule lists_of_zb_h1(int ranks, int micro_batches) {
  ListMaker lists("zero bubble", stages_in_order(ranks), micro_batches);
  for (int stage = 0; stage < ranks; ++stage) {
    for (int i = 0; i < ranks - stage - 1; ++i) lists.add(Kind::kForward, stage);
    for (int i = 0; i < micro_batches; ++i) {
      lists.add(Kind::kForward, stage);
      lists.add(Kind::kBackwardInputs, stage);
      if (i >= stage) lists.add(Kind::kBackwardWeights, stage);
    }
    while (lists.add(Kind::kBackwardWeights, stage)) continue;
  }
  return lists.take();
}

namespace {

// A list scheduler ----------------------------------------------------------------------------

// Which of the computations that could begin does.
struct Precedence {
  bool forward_first;  // before gradients of inputs
  bool later_first;    // forwards of the rank's later stages before those of its earlier ones
};

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

// Nothing if all ranks are at their limits of memory before the end.
std::optional<Schedule> schedule_lists(const std::vector<int>& rank_of_stage, int micro_batches,
                                       const Costs& costs, const std::vector<double>& limits,
                                       const Precedence& precedence) {
  return ListScheduler(rank_of_stage, micro_batches, costs, limits, precedence).make();
}

// One rank of ZB-V: its stage on the way there and the one on the way back.
class VRank {
 public:
  VRank(ListMaker& lists, int ranks, int rank, int micro_batches)
      : lists_(lists),
        ranks_(ranks),
        rank_(rank),
        micro_batches_(micro_batches),
        there_(rank),
        back_(2 * ranks - 1 - rank) {}

  void make() {
    warm_up();
    while (missing(Kind::kForward, there_) || missing(Kind::kForward, back_)) steady();
    while (missing(Kind::kBackwardInputs, there_)) cool_down();
    while (weights(back_) | weights(there_)) continue;
  }

 private:
  bool missing(Kind kind, int stage) const { return lists_.count(kind, stage) < micro_batches_; }
  void forward(int stage) { lists_.add(Kind::kForward, stage); }
  bool after(Kind kind, Kind before, int stage) {
    return lists_.count(kind, stage) < lists_.count(before, stage) && lists_.add(kind, stage);
  }
  void inputs(int stage) { after(Kind::kBackwardInputs, Kind::kForward, stage); }
  bool weights(int stage) { return after(Kind::kBackwardWeights, Kind::kBackwardInputs, stage); }

  void warm_up() {
    for (int i = 0; i < 2 * (ranks_ - rank_ - 1); ++i) forward(there_);
    for (int i = 0; i <= rank_; ++i) {
      forward(there_);
      forward(back_);
    }
    for (int i = 0; i < ranks_ - rank_ - 1; ++i) {
      inputs(back_);
      weights(back_);
      forward(back_);
    }
  }
  void steady() {
    inputs(back_);
    weights(back_);
    forward(there_);
    inputs(there_);
    weights(there_);
    forward(back_);
  }
  // Gradients of inputs of both stages take turns; later only those of the first stage are left,
  // each of which comes a time unit after the one before: gradients of weights are between them.
  void cool_down() {
    inputs(back_);
    const bool turns = missing(Kind::kBackwardInputs, back_);
    inputs(there_);
    if (!turns && rank_ < ranks_ - 1 && !weights(back_)) weights(there_);
  }

  ListMaker& lists_;
  const int ranks_, rank_, micro_batches_, there_, back_;
};

}  // namespace

Schedule lists_of_zb_v(int ranks, int micro_batches) {
  ListMaker lists("zb-v", stages_in_v(ranks), micro_batches);
  for (int rank = 0; rank < ranks; ++rank) VRank(lists, ranks, rank, micro_batches).make();
  return lists.take();
}

namespace {

// The shortest schedule of those that keep to the limits.
class Choice {
 public:
  Choice(const Costs& costs, const std::vector<double>& limits, int steps)
      : costs_(costs), memory_(costs), limits_(limits), steps_(steps) {
    for (StageCosts& stage : memory_.stages) stage.output = 0;
  }
  void offer(Schedule lists) {
    Schedule schedule = with_messages(std::move(lists), costs_);
    if (!keeps_limits(schedule)) return;
    const double seconds = simulate(schedule, costs_, {.steps = steps_}).seconds;
    if (best_ && seconds >= seconds_ * (1 - 1e-9)) return;
    seconds_ = seconds;
    best_ = std::move(schedule);
  }
  std::optional<Schedule> take() { return std::move(best_); }

 private:
  bool keeps_limits(const Schedule& schedule) const {
    const std::vector<double> peaks = simulate(schedule, memory_).peak_bytes;
    return std::equal(peaks.begin(), peaks.end(), limits_.begin(),
                      [](double peak, double limit) { return peak <= limit * (1 + 1e-9); });
  }

  const Costs& costs_;
  Costs memory_;
  const std::vector<double>& limits_;
  const int steps_;
  std::optional<Schedule> best_;
  double seconds_ = 0;
};

Schedule choose(const std::vector<int>& rank_of_stage, int micro_batches, const Costs& costs,
                const std::vector<double>& limits, int steps) {
  const int ranks = static_cast<int>(limits.size());
  Choice choice(costs, limits, steps);
  if (rank_of_stage == stages_in_order(ranks)) choice.offer(lists_of_zb_h1(ranks, micro_batches));
  if (rank_of_stage == stages_in_v(ranks)) choice.offer(lists_of_zb_v(ranks, micro_batches));
  for (const bool forward_first : {false, true})
    for (const bool later_first : {true, false})
      if (std::optional<Schedule> lists =
              schedule_lists(rank_of_stage, micro_batches, costs, limits,
                             {.forward_first = forward_first, .later_first = later_first}))
        choice.offer(std::move(*lists));
  std::optional<Schedule> best = choice.take();
  CATENA_CHECK(
      ValueError, best.has_value(),
      "zero_bubble: no schedule was found that keeps every rank within its limit; raise the "
      "limits (a rank needs more than the activations of one micro-batch in each of its "
      "stages)");
  return std::move(*best);
}

// Twice what the first rank of 1F1B holds: as many micro-batches as there are ranks, in all stages
// of a rank.
std::vector<double> default_limits(const std::vector<int>& rank_of_stage, int ranks,
                                   const Costs& costs) {
  std::vector<double> sums(size_t(ranks), 0);
  for (size_t stage = 0; stage < rank_of_stage.size(); ++stage) {
    const StageCosts& of_stage = costs.of(static_cast<int>(stage));
    sums[size_t(rank_of_stage[stage])] += std::max(of_stage.activations, of_stage.for_weights);
  }
  const double largest = *std::max_element(sums.begin(), sums.end());
  return std::vector<double>(size_t(ranks), 2 * ranks * largest);
}

int count_ranks(const std::vector<int>& rank_of_stage) {
  CATENA_CHECK(ValueError, !rank_of_stage.empty(),
               "zero_bubble: rank_of_stage is empty; it says "
               "where each stage is");
  const auto [least, most] = std::minmax_element(rank_of_stage.begin(), rank_of_stage.end());
  CATENA_CHECK(ValueError, *least >= 0, "zero_bubble: a stage is on rank ", *least);
  return *most + 1;
}

}  // namespace

Schedule zero_bubble(const std::vector<int>& rank_of_stage, int micro_batches, const Costs& costs,
                     const ZeroBubbleOptions& options) {
  const int ranks = count_ranks(rank_of_stage);
  check_counts("zero_bubble", ranks, micro_batches);
  CATENA_CHECK(ValueError, options.limits.empty() || options.limits.size() == size_t(ranks),
               "zero_bubble: limits for ", options.limits.size(), " ranks; the stages are on ",
               ranks);
  check(costs, {.name = "zero bubble",
                .micro_batches = micro_batches,
                .rank_of_stage = rank_of_stage,
                .actions = {}});
  const std::vector<double> limits =
      options.limits.empty() ? default_limits(rank_of_stage, ranks, costs) : options.limits;
  return choose(rank_of_stage, micro_batches, costs, limits, options.steps);
}

Schedule zero_bubble(int ranks, int micro_batches) {
  check_counts("zero_bubble", ranks, micro_batches);
  return with_messages(lists_of_zb_h1(ranks, micro_batches));
}

Schedule zb_v(int ranks, int micro_batches) {
  check_counts("zb_v", ranks, micro_batches);
  Schedule best = choose(stages_in_v(ranks), micro_batches, {},
                         std::vector<double>(size_t(ranks), 2 * ranks), 2);
  best.name = "zb-v";
  return best;
}

}  // namespace catena::parallel::pipeline
