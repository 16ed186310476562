// What the status board says about the other ranks of this host: calls that differ, ranks that
// failed or left, waits that can never end.
#include "peer_status.h"

#include <algorithm>

#include "catena/comm/transport.h"
#include "catena/core/log.h"
#include "mismatch.h"

namespace catena::comm {

namespace {

// Whether two ranks' current calls are the two ends of one message.
bool is_pair(const CallRecord& a, const CallRecord& b) {
  return is_message(a) && is_message(b) && a.communicator == b.communicator &&
         a.sequence == b.sequence;
}

// Whether it failed because it noticed the failure of another rank: what it threw then became its
// own failure as well, later. One that notes no failure of its own goes on, with other
// communicators.
bool is_victim(const SlotSnapshot& peer) {
  return peer.peer_failure.present && peer.own_failure.present &&
         peer.peer_failure.monotonic_ns <= peer.own_failure.monotonic_ns;
}

// Seconds after which a call that has not progressed may be part of a deadlock.
constexpr double kStuck = 2;

// All ranks have been in calls of this communicator for a while and no two of them can ever meet.
// Calls in groups are left alone: which of them are done is not recorded.
std::string deadlock(const BoardPlace& place, const Rings& rings, uint64_t id, int size,
                     int* culprit) {
  if (int(rings.size()) != size) return {};  // ranks on other hosts
  const uint64_t now = monotonic_ns();
  std::vector<CallRecord> current;
  std::vector<std::string> calls;
  uint64_t sequence = UINT64_MAX;
  if (culprit) *culprit = -1;
  for (int r = 0; r < size; ++r) {
    const SlotSnapshot peer = place.board->read(place.slots[size_t(r)]);
    if (!peer.in_call || rings[size_t(r)].empty()) return {};
    if (double(now - peer.operation_started_ns) < kStuck * 1e9) return {};
    const CallRecord last = rings[size_t(r)].back();
    if (last.call.kind == CallKind::kGrouped || (!is_message(last) && last.communicator != id))
      return {};
    for (const CallRecord& other : current)
      if (is_pair(last, other)) return {};
    current.push_back(last);
    calls.push_back("waited in " + format_call(last));
    sequence = std::min(sequence, last.sequence);
  }
  const auto is_first = [&](const CallRecord& last) { return last.hash == current[0].hash; };
  if (std::all_of(current.begin(), current.end(), is_first)) return {};  // one slow collective
  if (culprit) *culprit = rank_in_job(place, odd_rank(calls));
  return describe_mismatch(calls, sequence) +
         " (a send waits for its recv: put exchanges into one group)";
}

}  // namespace

std::string difference_on_board(const BoardPlace& place, int rank, int size, uint64_t id, int depth,
                                int* culprit) {
  if (!place.board) return {};
  Rings rings;
  std::vector<int> ranks;
  size_t own = 0;
  for (int r = 0; r < size; ++r) {
    const int slot = place.slots[size_t(r)];
    if (slot < 0) continue;
    if (r == rank) own = rings.size();
    rings.push_back(place.board->calls(slot, depth));
    ranks.push_back(r);
  }
  const std::string text = difference_between(rings, own, ranks, id, size_t(size), culprit);
  if (culprit) *culprit = rank_in_job(place, *culprit);
  return text;
}

std::string problem_on_board(const BoardPlace& place, int rank, int size, uint64_t id,
                             double waited_seconds, int* culprit) {
  if (!place.board) return {};
  Rings rings;
  std::vector<int> ranks;
  size_t own = 0;
  std::string failure;
  int failed = -1, victim_of = -1;
  uint64_t failed_at = UINT64_MAX;
  for (int r = 0; r < size; ++r) {
    const int slot = place.slots[size_t(r)];
    if (slot < 0) continue;
    rings.push_back(place.board->calls(slot));
    ranks.push_back(r);
    if (r == rank) {
      own = rings.size() - 1;
      continue;
    }
    const SlotSnapshot peer = place.board->read(slot);
    const std::string doing = peer.operation.empty() ? "" : ", last seen in " + peer.operation;
    if (is_victim(peer)) {
      // It ends because of another rank, and says which, whatever its exception was called after.
      if (peer.peer_failure.monotonic_ns >= failed_at) continue;
      failed_at = peer.peer_failure.monotonic_ns;
      failure = peer.peer_failure.text;
      victim_of = peer.peer_failure.blamed_rank;
      failed = -1;
    } else if (peer.own_failure.present && peer.own_failure.monotonic_ns < failed_at) {
      failed_at = peer.own_failure.monotonic_ns;
      failure = message("rank ", r, " failed", doing, ": ", peer.own_failure.text);
      failed = r;
    } else if (failure.empty() && has_died(peer)) {
      failure = message("rank ", r, " (process ", peer.pid, ") died", doing);
      failed = r;
    } else if (failure.empty() && waited_seconds > 0 &&
               (peer.phase == Phase::finishing || peer.phase == Phase::finished)) {
      failure = message("rank ", r, " has left the program", doing);
      failed = r;
    }
  }
  int odd = -1;
  const std::string text = difference_between(rings, own, ranks, id, size_t(size), &odd);
  if (culprit) *culprit = rank_in_job(place, text.empty() ? failed : odd);
  if (!text.empty()) return text;
  if (culprit && failed < 0) *culprit = victim_of;  // a rank of the job already
  if (!failure.empty()) return failure;
  return waited_seconds < kStuck ? std::string() : deadlock(place, rings, id, size, culprit);
}

int rank_in_job(const BoardPlace& place, int rank) {
  if (rank >= 0 && size_t(rank) < place.ranks.size()) return place.ranks[size_t(rank)];
  if (!place.board || rank < 0 || place.slots[size_t(rank)] < 0) return rank;
  const int known = place.board->read(place.slots[size_t(rank)]).rank;
  return known < 0 ? rank : known;
}

}  // namespace catena::comm
