// Where messages go between computations. A timeline of the computations is planned first. Then
// each message gets a moment between the end of what makes it and the begin of what waits for it,
// and every rank's list is the order of its moments, computations counted by their ends. All lists
// agree with one order of time, so executed one by one nothing waits in a circle; groups of
// neighbours only begin earlier. Times are whole numbers, so that equal ones are equal.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "catena/core/error.h"
#include "catena/parallel/pipeline/schedules.h"
#include "catena/parallel/pipeline/simulate.h"
#include "rules.h"

namespace catena::parallel::pipeline {
namespace {

using Ticks = int64_t;
constexpr double kTicks = 1e6;  // of the longest action

struct Planned {
  Ticks begin = 0, end = 0;
};

// What a message is between: the sender's computation and the receiver's.
struct Transfer {
  Action send, receive;
  Planned maker, user;
};

class Planner {
 public:
  Planner(const Schedule& schedule, const Costs& costs);

  const std::vector<std::vector<Planned>>& plan() const { return plan_; }
  // With messages at the moments that the function says.
  Schedule place(const std::function<Ticks(const Transfer&)>& moment) const;
  // Whether the rank computes nothing at that moment, or just begins or ends.
  bool is_free(int rank, Ticks moment) const;
  int rank_of(int stage) const { return s_.rank_of_stage[size_t(stage)]; }

 private:
  void make_plan();
  bool plan_next(int rank);
  std::optional<Ticks> arrival(const Action& action) const;
  std::optional<Ticks> end_of(const Action& action) const;
  Ticks ticks(const Action& action) const;
  void find_transfers();
  const Planned& planned(const Action& action) const {
    return plan_[size_t(rank_of(action.stage))][size_t(at_.of(action))];
  }

  const Schedule& s_;
  const Costs& costs_;
  Positions at_;
  double scale_ = 1;
  std::vector<std::vector<Planned>> plan_;  // of each rank's actions
  std::vector<Transfer> transfers_;
};

Planner::Planner(const Schedule& schedule, const Costs& costs)
    : s_(schedule), costs_(costs), at_(schedule), plan_(schedule.actions.size()) {
  check_computations(schedule, at_, false);
  double longest = 0;
  for (const std::vector<Action>& list : schedule.actions)
    for (const Action& action : list) longest = std::max(longest, seconds_of(costs, s_, action));
  if (longest > 0) scale_ = kTicks / longest;
  make_plan();
  find_transfers();
}

// At least one, so that the end of a computation comes after its begin.
Ticks Planner::ticks(const Action& action) const {
  return std::max<Ticks>(1, std::llround(seconds_of(costs_, s_, action) * scale_));
}

std::optional<Ticks> Planner::end_of(const Action& action) const {
  const size_t rank = size_t(rank_of(action.stage)), position = size_t(at_.of(action));
  if (position >= plan_[rank].size()) return std::nullopt;
  return plan_[rank][position].end;
}

// When what another rank makes for a computation arrives; nothing if it is not planned yet.
std::optional<Ticks> Planner::arrival(const Action& action) const {
  const int stage = action.stage, k = action.micro_batch;
  Action maker, send;
  if (action.kind == Kind::kForward && stage > 0 && !hands_over(s_, stage - 1)) {
    maker = {Kind::kForward, stage - 1, k};
    send = {Kind::kSendOutput, stage - 1, k};
  } else if (action.kind > Kind::kForward && action.kind < Kind::kSendOutput &&
             stage + 1 < s_.stages() && !hands_over(s_, stage)) {
    maker = at_.gradient_of_inputs(stage + 1, k);
    send = {Kind::kSendGradient, stage + 1, k};
  } else {
    return 0;
  }
  const std::optional<Ticks> made = end_of(maker);
  if (!made) return std::nullopt;
  return *made + std::llround(seconds_of(costs_, s_, send) * scale_);
}

void Planner::make_plan() {
  bool progress = true;
  while (progress) {
    progress = false;
    for (int rank = 0; rank < s_.ranks(); ++rank)
      while (plan_next(rank)) progress = true;
  }
  std::string waiting;
  for (int rank = 0; rank < s_.ranks(); ++rank) {
    const size_t next = plan_[size_t(rank)].size();
    const std::vector<Action>& list = s_.actions[size_t(rank)];
    if (next < list.size())
      waiting += message(waiting.empty() ? "" : ", ", "rank ", rank, " at position ", next,
                         " for what ", to_string(list[next]), " needs");
  }
  CATENA_CHECK(ValueError, waiting.empty(), "with_messages: schedule '", s_.name,
               "': no messages can end it, because its ranks wait for each other: ", waiting,
               "; order the computations so that each comes after what it needs");
}

bool Planner::plan_next(int rank) {
  std::vector<Planned>& plan = plan_[size_t(rank)];
  const std::vector<Action>& list = s_.actions[size_t(rank)];
  if (plan.size() == list.size()) return false;
  const Action& action = list[plan.size()];
  const std::optional<Ticks> arrived = arrival(action);
  if (!arrived) return false;
  const Ticks begin = std::max(plan.empty() ? 0 : plan.back().end, *arrived);
  plan.push_back({begin, begin + ticks(action)});
  return true;
}

void Planner::find_transfers() {
  for (int stage = 0; stage + 1 < s_.stages(); ++stage) {
    if (hands_over(s_, stage)) continue;
    for (int k = 0; k < s_.micro_batches; ++k) {
      transfers_.push_back({{Kind::kSendOutput, stage, k},
                            {Kind::kRecvInput, stage + 1, k},
                            planned({Kind::kForward, stage, k}),
                            planned({Kind::kForward, stage + 1, k})});
      const Action inputs = at_.gradient_of_inputs(stage, k);
      transfers_.push_back({{Kind::kSendGradient, stage + 1, k},
                            {Kind::kRecvGradient, stage, k},
                            planned(at_.gradient_of_inputs(stage + 1, k)),
                            planned(at_.has(inputs) ? inputs : at_.gradient_of_weights(stage, k))});
    }
  }
}

bool Planner::is_free(int rank, Ticks moment) const {
  const std::vector<Planned>& plan = plan_[size_t(rank)];
  const auto next = std::partition_point(plan.begin(), plan.end(),
                                         [&](const Planned& p) { return p.end <= moment; });
  return next == plan.end() || next->begin >= moment;
}

Schedule Planner::place(const std::function<Ticks(const Transfer&)>& moment) const {
  struct Placed {
    Ticks time;
    bool message;
    bool receive;
    Action action;
  };
  std::vector<std::vector<Placed>> lists(plan_.size());
  for (size_t rank = 0; rank < plan_.size(); ++rank)
    for (size_t i = 0; i < plan_[rank].size(); ++i)
      lists[rank].push_back({plan_[rank][i].end, false, false, s_.actions[rank][i]});
  // At equal times they come after what ends then, in one order on all ranks, that of transfers_.
  for (const Transfer& transfer : transfers_) {
    const Ticks time = moment(transfer);
    const auto list_of = [&](const Action& end) -> std::vector<Placed>& {
      return lists[size_t(rank_of(end.stage))];
    };
    list_of(transfer.send).push_back({time, true, false, transfer.send});
    list_of(transfer.receive).push_back({time, true, true, transfer.receive});
  }
  Schedule result = s_;
  for (size_t rank = 0; rank < lists.size(); ++rank) {
    std::vector<Placed>& list = lists[rank];
    std::stable_sort(list.begin(), list.end(),
                     [](const Placed& a, const Placed& b) { return a.time < b.time; });
    // Sends of a group come first, which changes no order between two ranks.
    for (auto begin = list.begin(); begin != list.end();) {
      auto end = begin + 1;
      while (begin->message && end != list.end() && end->message) ++end;
      std::stable_partition(begin, end, [](const Placed& p) { return !p.receive; });
      begin = end;
    }
    result.actions[rank].clear();
    for (const Placed& placed : list) result.actions[rank].push_back(placed.action);
  }
  return result;
}

// As late as the receiver allows.
Ticks late(const Transfer& transfer) { return transfer.user.begin; }
// As soon as it is made.
Ticks early(const Transfer& transfer) { return transfer.maker.end; }

// The last moment at which neither rank computes, so that neither waits at its place; if there is
// none, as late as the receiver allows.
Ticks when_free(const Planner& planner, const Transfer& transfer) {
  const int from = planner.rank_of(transfer.send.stage),
            to = planner.rank_of(transfer.receive.stage);
  Ticks best = -1;
  const auto consider = [&](Ticks moment) {
    if (moment >= transfer.maker.end && moment <= transfer.user.begin && moment > best &&
        planner.is_free(from, moment) && planner.is_free(to, moment))
      best = moment;
  };
  for (const int rank : {from, to}) {
    for (const Planned& planned : planner.plan()[size_t(rank)]) {
      consider(planned.begin);
      consider(planned.end);
    }
  }
  return best < 0 ? late(transfer) : best;
}

// The shortest of the schedules with the same computations, as simulate() says.
class Shortest {
 public:
  Shortest(const Schedule& lists, const Costs& costs) : lists_(lists), costs_(costs) {}

  // Messages placed by a timeline with these costs, in three ways.
  void plan_with(const Costs& costs) {
    const Planner planner(lists_, costs);
    offer(planner.place(late));
    offer(planner.place([&](const Transfer& transfer) { return when_free(planner, transfer); }));
    offer(planner.place(early));
  }
  Schedule take() { return std::move(best_); }

 private:
  void offer(Schedule schedule) {
    const double seconds = simulate(schedule, costs_).seconds;
    if (seconds >= shortest_ * (1 - 1e-9)) return;
    shortest_ = seconds;
    best_ = std::move(schedule);
  }

  const Schedule& lists_;
  const Costs& costs_;
  Schedule best_;
  double shortest_ = std::numeric_limits<double>::infinity();
};

void remove_messages(Schedule& schedule) {
  for (std::vector<Action>& list : schedule.actions)
    std::erase_if(list, [](const Action& action) { return is_message(action.kind); });
}

}  // namespace

Schedule with_messages(Schedule schedule, const Costs& costs) {
  remove_messages(schedule);
  check_updates(schedule, Positions(schedule));
  check(costs, schedule);
  Shortest shortest(schedule, costs);
  shortest.plan_with({});
  if (costs != Costs{}) shortest.plan_with(costs);
  return shortest.take();
}

}  // namespace catena::parallel::pipeline
