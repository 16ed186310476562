#include "walk.h"

#include <algorithm>
#include <utility>

#include "catena/core/error.h"
#include "parallel/pipeline/rules.h"

namespace catena::parallel::pipeline {

std::vector<std::vector<Item>> items_of(const Schedule& schedule) {
  std::vector<std::vector<Item>> result;
  for (const std::vector<Action>& list : schedule.actions) {
    std::vector<Item>& items = result.emplace_back();
    const int size = static_cast<int>(list.size());
    for (int begin = 0, end; begin < size; begin = end) {
      end = begin + 1;
      const bool messages = is_message(list[size_t(begin)].kind);
      while (messages && end < size && is_message(list[size_t(end)].kind)) ++end;
      items.push_back({messages ? Item::Type::kMessages : Item::Type::kComputation, begin, end});
    }
  }
  return result;
}

int message_number(const Schedule& schedule, const Action& action) {
  const int border = std::min(action.stage, peer_stage(action));
  return (border * 2 + (is_of_gradients(action) ? 1 : 0)) * schedule.micro_batches +
         action.micro_batch;
}

int message_count(const Schedule& schedule) {
  return (schedule.stages() - 1) * 2 * schedule.micro_batches;
}

Walk::Walk(const Schedule& schedule, std::vector<std::vector<Item>> items, int rounds)
    : schedule_(schedule),
      items_(std::move(items)),
      rounds_(rounds),
      states_(items_.size()),
      posted_(size_t(message_count(schedule))) {
  for (size_t rank = 0; rank < items_.size(); ++rank)
    if (items_[rank].empty()) states_[rank].round = rounds_;
}

bool Walk::run(Observer& observer) {
  for (bool progress = true; progress;) {
    progress = false;
    for (int rank = 0; rank < schedule_.ranks(); ++rank) progress |= advance(rank, observer);
    if (!progress) progress = pass_barrier(observer);
  }
  return std::all_of(states_.begin(), states_.end(), [&](const State& s) { return done(s); });
}

bool Walk::advance(int rank, Observer& observer) {
  bool moved = false;
  while (advance_one(rank, observer)) moved = true;
  return moved;
}

// False if the rank is at its end or waits, as it did before.
bool Walk::advance_one(int rank, Observer& observer) {
  State& state = states_[size_t(rank)];
  if (done(state)) return false;
  const Item now = item(rank);
  if (now.type == Item::Type::kComputation) {
    observer.compute(rank, state.round, now.begin);
    step(rank);
    return true;
  }
  if (!state.waits) {
    state.waits = true;
    for (int at = now.begin; at < now.end; ++at)
      ++posted_[size_t(message_number(schedule_, schedule_.actions[size_t(rank)][size_t(at)]))];
    if (now.type == Item::Type::kMessages) observer.post(rank, state.round, now);
    return true;
  }
  if (now.type == Item::Type::kBarrier || !is_complete(rank)) return false;
  observer.complete(rank, state.round, now);
  step(rank);
  return true;
}

void Walk::step(int rank) {
  State& state = states_[size_t(rank)];
  state.waits = false;
  if (++state.item < items_[size_t(rank)].size()) return;
  state.item = 0;
  ++state.round;
}

const Item& Walk::item(int rank) const { return items_[size_t(rank)][states_[size_t(rank)].item]; }

// The first message of the rank's group whose other end is not posted. Both ends are posted once a
// round, and this one is.
const Action* Walk::first_pending(int rank) const {
  const Item& group = item(rank);
  for (int at = group.begin; at < group.end; ++at) {
    const Action& action = schedule_.actions[size_t(rank)][size_t(at)];
    if (posted_[size_t(message_number(schedule_, action))] < 2 * (states_[size_t(rank)].round + 1))
      return &action;
  }
  return nullptr;
}

bool Walk::is_complete(int rank) const { return first_pending(rank) == nullptr; }

bool Walk::pass_barrier(Observer& observer) {
  for (int rank = 0; rank < schedule_.ranks(); ++rank) {
    if (items_[size_t(rank)].empty()) continue;
    const State& state = states_[size_t(rank)];
    if (done(state) || item(rank).type != Item::Type::kBarrier) return false;
  }
  observer.pass_barrier(states_.empty() ? 0 : states_[0].round);
  for (int rank = 0; rank < schedule_.ranks(); ++rank)
    if (!items_[size_t(rank)].empty()) step(rank);
  return true;
}

std::string Walk::describe_cycle() const {
  int rank = 0;
  while (done(states_[size_t(rank)])) ++rank;
  std::vector<int> seen;  // ranks, each of which waits for the next
  const auto next = [&](int waiting) {
    if (item(waiting).type == Item::Type::kBarrier) {
      for (int other = 0; other < schedule_.ranks(); ++other)
        if (!done(states_[size_t(other)]) && item(other).type != Item::Type::kBarrier) return other;
      return waiting;
    }
    return schedule_.rank_of_stage[size_t(peer_stage(*first_pending(waiting)))];
  };
  for (; std::find(seen.begin(), seen.end(), rank) == seen.end(); rank = next(rank))
    seen.push_back(rank);
  seen.erase(seen.begin(), std::find(seen.begin(), seen.end(), rank));
  std::string text;
  for (const int waiting : seen) {
    text += message(text.empty() ? "" : ", ", "rank ", waiting, " waits at position ",
                    item(waiting).begin, " ");
    if (item(waiting).type == Item::Type::kBarrier) {
      text += "for all gradients, before its updates";
      continue;
    }
    const Action& action = *first_pending(waiting);
    text += message("for rank ", next(waiting), " to ", is_send(action.kind) ? "receive" : "send",
                    " (", to_string(action), ")");
  }
  return text;
}

}  // namespace catena::parallel::pipeline
