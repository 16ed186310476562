// Waits that do not end: which ranks did not come, according to their records on the board.
#include "wait_diagnosis.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "catena/comm/internals.h"
#include "comm/communicator_state.h"
#include "mismatch.h"

namespace catena::comm {

namespace {
constexpr double kPollPeriod = 0.5;  // seconds between two reads of the other ranks' records
constexpr double kLookPeriod = 0.1;  // before kFirstPoll
}  // namespace

double WaitClock::seconds() {
  const Clock::time_point now = Clock::now();
  seconds_ += std::min(std::chrono::duration<double>(now - read_).count(), kLongestPoll);
  read_ = now;
  return seconds_;
}

LastCalls last_calls(const BoardPlace& place, uint64_t id) {
  LastCalls last(place.slots.size());
  for (size_t r = 0; place.board && r < last.size(); ++r) {
    if (place.slots[r] < 0) continue;
    last[r] = last_known_call(place.board->calls(place.slots[r]), id, StatusBoard::kRingSize);
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

// "ranks 2, 3 on node7": those whose records are on no board of this host. "" when there are none
// or nothing is known of them.
std::string list_elsewhere(const BoardPlace& place, const LastCalls& last) {
  std::map<std::string, std::vector<int>> by_host;
  for (size_t r = 0; r < place.hosts.size() && r < place.slots.size(); ++r)
    if (!last[r] && place.slots[r] < 0) by_host[place.hosts[r]].push_back(int(r));
  std::string text;
  for (const auto& [host, ranks] : by_host)
    text += message(text.empty() ? "" : ", ", list_ranks(ranks), " on ", host);
  return text;
}

// What ranks of this host do, as far as it explains a wait for them.
struct Activity {
  std::string text;            // begins with "; "
  int stopped = -1;            // the first rank whose process is stopped
  std::vector<int> stuck;      // inside one call of MPI for long
  std::vector<int> elsewhere;  // in a call of another communicator
  // The rank that this incriminates; -1: none, or several.
  int suspect() const { return stopped < 0 && stuck.size() == 1 ? stuck[0] : stopped; }
};

Activity activity_of(const BoardPlace& place, uint64_t id, const std::vector<int>& ranks) {
  constexpr uint64_t kLongInside = 2'000'000'000;  // ns
  Activity doing;
  const auto add = [&](const auto&... words) {
    doing.text += message(doing.text.empty() ? "; " : ", ", words...);
  };
  for (const int r : ranks) {
    const int slot = size_t(r) < place.slots.size() ? place.slots[size_t(r)] : -1;
    if (!place.board || slot < 0) continue;
    const SlotSnapshot peer = place.board->read(slot);
    const auto calls = place.board->calls(slot, 1);
    const uint64_t inside = peer.library_since_ns, now = monotonic_ns();
    if (is_stopped(peer)) {
      if (doing.stopped < 0) doing.stopped = r;
      add("rank ", r, " (process ", peer.pid, ") is stopped, as by SIGSTOP");
    } else if (inside != 0 && now > inside + kLongInside) {
      doing.stuck.push_back(r);
      add("rank ", r, " has been inside one call of MPI for ", (now - inside) / 1'000'000'000,
          " s");
    } else if (peer.in_call && !calls.empty() && !is_message(calls[0]) &&
               calls[0].communicator != id) {
      doing.elsewhere.push_back(r);
      add("rank ", r, " is in ", format_call(calls[0]), " of another communicator");
    }
  }
  return doing;
}

std::vector<int> every_rank(const LastCalls& last) {
  std::vector<int> ranks(last.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// Why `wait.sequence`, which no rank is known to have left out, has not ended.
std::string describe_unfinished(const LastCalls& last, const Wait& wait,
                                const std::string& elsewhere) {
  const auto is_known = [](const auto& call) { return call.has_value(); };
  const std::string call = message("call #", wait.sequence);
  if (last.empty() || !std::all_of(last.begin(), last.end(), is_known)) {
    const std::string network =
        elsewhere.empty() ? "" : ", or the network between the hosts is down";
    return message(elsewhere.empty() ? "other ranks" : elsewhere, " did not come to ", call,
                   wait.on_gpu ? message(", or ", kBusyGpu) : network);
  }
  return "all ranks have made " + call +
         (wait.on_gpu ? message(": ", kBusyGpu, ", or the transfer hangs")
                      : ", but the transfer hangs");
}

// Why calls up to `wait.sequence` have not ended; `late` becomes the ranks that left one out for
// certain. A rank that left out a later one of several calls may be waited for, or not yet.
std::string describe_calls(const LastCalls& last, const Wait& wait, const std::string& elsewhere,
                           std::vector<int>& late) {
  const uint64_t first = wait.first > 0 ? wait.first : wait.sequence;
  late = late_ranks(last, first);
  if (!late.empty()) return message(list_ranks(late), " did not come to call #", first);
  const std::vector<int> perhaps = late_ranks(last, wait.sequence);
  if (perhaps.empty()) return describe_unfinished(last, wait, elsewhere);
  return message(list_ranks(perhaps), " did not come to call #", wait.sequence, ", or ", kBusyGpu);
}

// As describe_calls, of a wait for no call in particular.
std::string describe_slowest(const LastCalls& last, const Wait& wait, const std::string& elsewhere,
                             std::vector<int>& late) {
  late = slowest_ranks(last);
  // If this rank is one of them, the others only ran ahead.
  if (std::find(late.begin(), late.end(), wait.rank) != late.end()) late.clear();
  if (!late.empty())
    return message(list_ranks(late), late.size() > 1 ? " have" : " has",
                   " made fewer calls than others");
  if (elsewhere.empty()) return "other ranks did not come or do not progress";
  return elsewhere + " did not come or do not progress, or the network between the hosts is down";
}

}  // namespace

WaitDiagnosis diagnose_timeout(const BoardPlace& place, uint64_t id, double timeout,
                               const Wait& wait) {
  const LastCalls last = last_calls(place, id);
  const std::string elsewhere = list_elsewhere(place, last);
  std::vector<int> late;
  std::string why;
  if (wait.peer >= 0) {
    late = {wait.peer};
    why = list_ranks(late) + " did not come";
  } else if (wait.sequence > 0) {
    why = describe_calls(last, wait, elsewhere, late);
  } else {
    why = describe_slowest(last, wait, elsewhere, late);
  }
  const Activity doing = activity_of(place, id, late.empty() ? every_rank(last) : late);
  why += doing.text;
  int culprit = late.empty() ? doing.suspect() : late[0];
  // Two communicators in different order: unless they are the fewer, these ranks may be right.
  if (!late.empty() && doing.elsewhere == late && 2 * late.size() >= last.size()) culprit = -1;
  const std::string who = wait.rank < 0 ? "" : message("rank ", wait.rank, " ");
  return {message(who, "waited ", timeout, " s (CATENA_TIMEOUT) ", wait.doing, ": ", why,
                  "; inspect the ranks' logs or stack traces", describe_part(place)),
          rank_in_job(place, culprit)};
}

WaitDiagnosis diagnose_timeout(const Communicator* owner, double timeout, const Wait& wait) {
  if (!owner) return diagnose_timeout(BoardPlace{}, 0, timeout, wait);
  const Communicator::State& state = Communicator::State::of(*owner);
  return diagnose_timeout(state.place, state.id, timeout, wait);
}

WaitDiagnosis diagnose_wait(const Communicator* owner, double waited, double timeout,
                            const Wait& wait, double& next_poll) {
  if (owner && waited >= next_poll) {
    const bool only_deadlocks = waited < kFirstPoll;
    next_poll = waited + (only_deadlocks ? kLookPeriod : kPollPeriod);
    WaitDiagnosis found;
    found.text = only_deadlocks ? internals(*owner).find_deadlock(&found.culprit)
                                : internals(*owner).find_problem(waited, &found.culprit);
    if (!found.text.empty()) return found;
  }
  return waited < timeout ? WaitDiagnosis() : diagnose_timeout(owner, timeout, wait);
}

}  // namespace catena::comm
