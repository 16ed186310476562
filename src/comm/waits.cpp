// Waits that do not end: which ranks did not come, as their records on the board tell.
#include <algorithm>

#include "communicator_state.h"

namespace catena::comm {

namespace {
constexpr double kNextLook = 0.5;  // seconds between two looks at the other ranks' records
}  // namespace

uint64_t last_call(const std::vector<CallRecord>& ring, uint64_t id) {
  uint64_t last = 0;
  for (const CallRecord& call : ring)
    if (call.communicator == id) last = std::max(last, call.sequence);
  return last;
}

LastCalls last_calls(const BoardPlace& place, uint64_t id) {
  LastCalls last(place.slots.size());
  for (size_t r = 0; place.board && r < last.size(); ++r) {
    if (place.slots[r] < 0) continue;
    const auto ring = place.board->calls(place.slots[r]);
    const uint64_t found = last_call(ring, id);
    if (found > 0 || ring.size() < size_t(StatusBoard::kRingSize)) last[r] = found;
  }
  return last;
}

std::vector<int> late_ranks(const LastCalls& last, uint64_t sequence) {
  std::vector<int> late;
  for (size_t r = 0; r < last.size(); ++r)
    if (last[r] && *last[r] < sequence) late.push_back(int(r));
  return late;
}

std::vector<int> slowest_ranks(const LastCalls& last) {
  uint64_t fewest = UINT64_MAX, most = 0;
  for (const auto& known : last) {
    if (!known) continue;
    fewest = std::min(fewest, *known);
    most = std::max(most, *known);
  }
  return fewest < most ? late_ranks(last, fewest + 1) : std::vector<int>();
}

namespace {

constexpr char kBusyGpu[] = "a GPU has not finished the work that was queued before it";

// Why `wait.sequence`, which no rank is known to have left out, has not ended.
std::string describe_unfinished(const LastCalls& last, const Wait& wait) {
  const auto is_known = [](const auto& call) { return call.has_value(); };
  const std::string call = message("call #", wait.sequence);
  if (last.empty() || !std::all_of(last.begin(), last.end(), is_known))
    return "other ranks did not come to " + call + (wait.on_gpu ? message(", or ", kBusyGpu) : "");
  return "all ranks have made " + call +
         (wait.on_gpu ? message(": ", kBusyGpu, ", or the transfer stands still")
                      : ", but the transfer stands still");
}

// Why calls up to `wait.sequence` have not ended; `late` becomes the ranks that left one out for
// certain. A rank that left out a later one of several calls may be waited for, or not yet.
std::string describe_calls(const LastCalls& last, const Wait& wait, std::vector<int>& late) {
  const uint64_t first = wait.first > 0 ? wait.first : wait.sequence;
  late = late_ranks(last, first);
  if (!late.empty()) return message(list_ranks(late), " did not come to call #", first);
  const std::vector<int> perhaps = late_ranks(last, wait.sequence);
  if (perhaps.empty()) return describe_unfinished(last, wait);
  return message(list_ranks(perhaps), " did not come to call #", wait.sequence, ", or ", kBusyGpu);
}

}  // namespace

WaitProblem describe_delay(const BoardPlace& place, uint64_t id, double timeout, const Wait& wait) {
  const LastCalls last = last_calls(place, id);
  std::vector<int> late;
  std::string why;
  if (wait.peer >= 0) {
    late = {wait.peer};
    why = list_ranks(late) + " did not come";
  } else if (wait.sequence > 0) {
    why = describe_calls(last, wait, late);
  } else {
    late = slowest_ranks(last);
    // If this rank is one of them, the others only ran ahead.
    if (std::find(late.begin(), late.end(), wait.rank) != late.end()) late.clear();
    why = late.empty() ? "other ranks did not come or do not progress"
                       : message(list_ranks(late), late.size() > 1 ? " have" : " has",
                                 " made fewer calls than others");
  }
  const std::string who = wait.rank < 0 ? "" : message("rank ", wait.rank, " ");
  return {message(who, "waited ", timeout, " s (CATENA_TIMEOUT) ", wait.doing, ": ", why,
                  "; the stacks or logs of the ranks tell what they do"),
          late.empty() ? -1 : rank_in_job(place, late[0])};
}

WaitProblem describe_delay(const Communicator* owner, double timeout, const Wait& wait) {
  if (!owner) return describe_delay(BoardPlace{}, 0, timeout, wait);
  const Communicator::State& state = Communicator::State::of(*owner);
  return describe_delay(state.place, state.id, timeout, wait);
}

WaitProblem find_wait_problem(const Communicator* owner, double waited, double timeout,
                              const Wait& wait, double& next_look) {
  if (owner && waited >= next_look) {
    next_look = waited + kNextLook;
    WaitProblem found;
    found.text = owner->find_problem(waited, &found.blamed);
    if (!found.text.empty()) return found;
  }
  return waited < timeout ? WaitProblem() : describe_delay(owner, timeout, wait);
}

}  // namespace catena::comm
