#include "parallel/pipeline/issue_order.h"

#include <algorithm>
#include <map>
#include <optional>

#include "catena/core/error.h"

namespace catena::parallel::pipeline {

namespace {

double duration(Kind kind) {
  switch (kind) {
    case Kind::kForward:
    case Kind::kBackwardInputs:
    case Kind::kBackwardWeights:
      return 1;
    case Kind::kBackward:
      return 2;
    default:
      return 0;
  }
}

// The send that a receive needs.
Action source_of(const Action& receive) {
  if (receive.kind == Kind::kRecvInput)
    return {Kind::kSendOutput, receive.stage - 1, receive.micro_batch};
  return {Kind::kSendGradient, receive.stage + 1, receive.micro_batch};
}

class Clock {
 public:
  explicit Clock(const Schedule& schedule)
      : schedule_(schedule), next_(schedule.actions.size()), free_at_(schedule.actions.size()) {}

  std::vector<Issued> run() {
    std::vector<Issued> order;
    size_t total = 0;
    for (const auto& list : schedule_.actions) total += list.size();
    while (order.size() < total) {
      const auto [rank, begin] = earliest();
      const Action& action = schedule_.actions[rank][next_[rank]++];
      free_at_[rank] = begin + duration(action.kind);
      if (is_message(action.kind)) sent_[action] = begin;
      order.push_back({static_cast<int>(rank), action});
    }
    return order;
  }

 private:
  // When a rank's next action may begin; nothing when it must wait or has ended.
  std::optional<double> begin_of(size_t rank) const {
    const std::vector<Action>& list = schedule_.actions[rank];
    if (next_[rank] == list.size()) return {};
    const Action& action = list[next_[rank]];
    if (action.kind != Kind::kRecvInput && action.kind != Kind::kRecvGradient)
      return free_at_[rank];
    const auto sent = sent_.find(source_of(action));
    if (sent == sent_.end()) return {};
    return std::max(free_at_[rank], sent->second);
  }

  std::pair<size_t, double> earliest() const {
    std::optional<std::pair<size_t, double>> best;
    for (size_t rank = 0; rank < next_.size(); ++rank) {
      const std::optional<double> begin = begin_of(rank);
      if (begin && (!best || *begin < best->second)) best = {rank, *begin};
    }
    CATENA_CHECK(ValueError, best, "Pipeline: all ranks of the schedule '", schedule_.name,
                 "' wait for messages that are not sent; check(schedule) says which");
    return *best;
  }

  const Schedule& schedule_;
  std::vector<size_t> next_;
  std::vector<double> free_at_;
  std::map<Action, double> sent_;
};

}  // namespace

std::vector<Issued> issue_order(const Schedule& schedule) { return Clock(schedule).run(); }

}  // namespace catena::parallel::pipeline
