// What the status board says about the other ranks of this host: calls that differ, ranks that
// failed or left, waits that can never end.
#include "peer_status.h"

#include <algorithm>
#include <optional>

#include "catena/comm/transport.h"
#include "catena/core/log.h"
#include "mismatch.h"

namespace catena::comm {

namespace {

// Whether it failed because it noticed the failure of another rank: what it threw then became its
// own failure as well, later. One that notes no failure of its own goes on, with other
// communicators.
bool is_victim(const SlotSnapshot& peer) {
  return peer.peer_failure.present && peer.own_failure.present &&
         peer.peer_failure.monotonic_ns <= peer.own_failure.monotonic_ns;
}

// Seconds of waiting after which a deadlock is looked for. What is one does not depend on it.
constexpr double kStuck = 2;

// The call that a rank is in. Nothing while it is in none, in one of a group (the records do not
// tell which calls of a group are done), in one of another communicator, or when it has begun
// another one since `ring` was read.
std::optional<CallRecord> current_call(const BoardPlace& place, const Ring& ring, int rank,
                                       uint64_t id) {
  const int slot = place.slots[size_t(rank)];
  if (ring.empty() || !place.board->read(slot).in_call) return {};
  const CallRecord& last = ring.back();
  const Ring now = place.board->calls(slot, 1);
  if (now.empty() || now[0].hash != last.hash || now[0].communicator != last.communicator)
    return {};
  if (last.call.kind == CallKind::kGrouped) return {};
  const int peer = last.call.root;
  const uint64_t own = !is_message(last)               ? id
                       : last.call.op == CommOp::kSend ? pair_id(id, rank, peer)
                                                       : pair_id(id, peer, rank);
  return own == last.communicator ? std::optional(last) : std::nullopt;
}

// Whether a rank has begun a call that another rank is in. True as well when its records do not
// reach back far enough to show it.
bool has_begun(const Ring& ring, const CallRecord& call) {
  const uint64_t last = last_call(ring, call.communicator);
  if (last == 0 && ring.size() >= size_t(StatusBoard::kRingSize)) return true;
  return last >= call.sequence;
}

// Whether a rank in this call waits for one that has not begun it.
bool is_blocked(const Rings& rings, const CallRecord& call) {
  if (is_message(call)) return !has_begun(rings[size_t(call.call.root)], call);
  return !std::all_of(rings.begin(), rings.end(),
                      [&](const Ring& ring) { return has_begun(ring, call); });
}

// Every rank waits, in a call of this communicator, for a rank that has not begun that call. A call
// that all its ranks have begun is in progress, however long it takes.
std::string deadlock(const BoardPlace& place, const Rings& rings, uint64_t id, int size,
                     int* culprit) {
  if (int(rings.size()) != size) return {};  // ranks on other hosts
  std::vector<std::string> calls;
  uint64_t sequence = UINT64_MAX;
  for (int r = 0; r < size; ++r) {
    const std::optional<CallRecord> call = current_call(place, rings[size_t(r)], r, id);
    if (!call || !is_blocked(rings, *call)) return {};
    calls.push_back("waited in " + format_call(*call));
    sequence = std::min(sequence, call->sequence);
  }
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
  if (culprit) *culprit = -1;
  return waited_seconds < kStuck ? std::string() : deadlock(place, rings, id, size, culprit);
}

int rank_in_job(const BoardPlace& place, int rank) {
  if (rank >= 0 && size_t(rank) < place.ranks.size()) return place.ranks[size_t(rank)];
  if (!place.board || rank < 0 || place.slots[size_t(rank)] < 0) return rank;
  const int known = place.board->read(place.slots[size_t(rank)]).rank;
  return known < 0 ? rank : known;
}

}  // namespace catena::comm
