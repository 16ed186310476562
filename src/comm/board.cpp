// What the status board tells about the other ranks of this host: calls that differ, ranks that
// failed or left, waits that can never end.
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <unordered_map>

#include "catena/core/log.h"
#include "communicator_state.h"

namespace catena::comm {

namespace {

struct CallGroup {
  std::string call;
  std::vector<int> ranks;
};

// The calls that are known, each once, in the order of the first rank that made it.
std::vector<CallGroup> group_calls(const std::vector<std::string>& calls) {
  std::vector<CallGroup> groups;
  for (size_t r = 0; r < calls.size(); ++r) {
    if (calls[r].empty()) continue;
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const CallGroup& g) { return g.call == calls[r]; });
    if (group == groups.end()) group = groups.insert(group, {calls[r], {}});
    group->ranks.push_back(int(r));
  }
  return groups;
}

// "ranks 0, 2 called X; rank 1 called Y"
std::string list_calls(const std::vector<std::string>& calls) {
  std::string text;
  for (const CallGroup& group : group_calls(calls)) {
    if (!text.empty()) text += "; ";
    text += list_ranks(group.ranks) + " " + group.call;
  }
  return text;
}

using Rings = std::vector<std::vector<CallRecord>>;

// The communicator of a call that `own` and another ring hold with different hashes; 0 when there
// is none. One pass, so that it may run every few steps.
uint64_t differing_communicator(const std::vector<CallRecord>& own, const Rings& rings,
                                const std::vector<uint64_t>& ids) {
  const auto key = [](const CallRecord& call) {
    return call.communicator ^ (call.sequence * 0x9e3779b97f4a7c15u);
  };
  std::unordered_map<uint64_t, const CallRecord*> mine;
  mine.reserve(own.size());
  for (const CallRecord& call : own)
    if (std::binary_search(ids.begin(), ids.end(), call.communicator))
      mine.emplace(key(call), &call);
  for (const auto& ring : rings) {
    for (const CallRecord& call : ring) {
      const auto entry = mine.find(key(call));
      if (entry == mine.end()) continue;
      const CallRecord& same = *entry->second;
      if (same.communicator == call.communicator && same.sequence == call.sequence &&
          same.hash != call.hash)
        return call.communicator;
    }
  }
  return 0;
}

// The communicator itself and the messages of one of its ranks, sorted.
std::vector<uint64_t> ids_of(uint64_t id, int rank, int size) {
  std::vector<uint64_t> ids{id};
  for (int r = 0; r < size; ++r) {
    ids.push_back(pair_id(id, rank, r));
    ids.push_back(pair_id(id, r, rank));
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::string difference(const Rings& rings, size_t own, const std::vector<int>& ranks, uint64_t id,
                       size_t size, int* blamed) {
  const uint64_t communicator =
      differing_communicator(rings[own], rings, ids_of(id, ranks[own], int(size)));
  if (communicator == 0) return {};
  const auto found = first_different_call(rings, communicator);
  if (!found) return {};
  std::vector<std::string> calls(size);
  for (size_t i = 0; i < rings.size(); ++i)
    if (found->calls[i]) calls[size_t(ranks[i])] = "called " + format_call(*found->calls[i]);
  if (blamed) *blamed = odd_rank(calls);
  return describe_mismatch(calls, found->sequence, found->exact);
}

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

// Seconds after which a call that has not moved is looked at.
constexpr double kStuck = 2;

// All ranks have been in calls of this communicator for a while and no two of them can ever meet.
// Calls in groups (CallRecord::reserved) are left alone: which of them are done is not recorded.
std::string deadlock(const BoardPlace& place, const Rings& rings, uint64_t id, int size,
                     int* blamed) {
  if (int(rings.size()) != size) return {};  // ranks on other hosts
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const uint64_t now_ns = uint64_t(now.tv_sec) * 1'000'000'000u + uint64_t(now.tv_nsec);
  std::vector<CallRecord> current;
  std::vector<std::string> calls;
  uint64_t sequence = UINT64_MAX;
  if (blamed) *blamed = -1;
  for (int r = 0; r < size; ++r) {
    const SlotSnapshot peer = place.board->read(place.slots[size_t(r)]);
    if (!peer.in_call || rings[size_t(r)].empty()) return {};
    if (double(now_ns - peer.operation_started_ns) < kStuck * 1e9) return {};
    const CallRecord call = rings[size_t(r)].back();
    if (call.reserved || (!is_message(call) && call.communicator != id)) return {};
    for (const CallRecord& other : current)
      if (is_pair(call, other)) return {};
    current.push_back(call);
    calls.push_back("waited in " + format_call(call));
    sequence = std::min(sequence, call.sequence);
  }
  const auto is_first = [&](const CallRecord& call) { return call.hash == current[0].hash; };
  if (std::all_of(current.begin(), current.end(), is_first)) return {};  // one slow collective
  if (blamed) *blamed = rank_in_job(place, odd_rank(calls));
  return describe_mismatch(calls, sequence) +
         " (a send waits for its recv: put exchanges into one group)";
}

}  // namespace

std::string list_ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  return text;
}

std::string describe_mismatch(const std::vector<std::string>& calls, uint64_t sequence,
                              bool exact) {
  std::string text =
      message("the ranks of this communicator differ in call #", sequence, ": ", list_calls(calls));
  if (!exact) text += " (they differed already in a call that is too long ago to be named)";
  return text +
         ". All ranks must make the same calls in the same order, with the same dtype, count, "
         "reduction and root";
}

int odd_rank(const std::vector<std::string>& calls) {
  const auto groups = group_calls(calls);
  if (groups.size() != 2 || groups[0].ranks.size() + groups[1].ranks.size() < 3) return -1;
  for (const CallGroup& group : groups)
    if (group.ranks.size() == 1) return group.ranks[0];
  return -1;
}

std::string difference_of(const Rings& rings, int rank, uint64_t id) {
  std::vector<int> ranks;
  for (size_t r = 0; r < rings.size(); ++r) ranks.push_back(int(r));
  return difference(rings, size_t(rank), ranks, id, rings.size(), nullptr);
}

std::string missing_call_of(const Rings& rings, uint64_t id) {
  uint64_t made_by_all = UINT64_MAX;
  for (const auto& ring : rings) made_by_all = std::min(made_by_all, last_call(ring, id));
  std::vector<std::string> calls(rings.size());
  bool some = false;
  for (size_t r = 0; r < rings.size(); ++r) {
    calls[r] = message("made no call after #", made_by_all);
    for (const CallRecord& call : rings[r]) {
      if (call.communicator != id || call.sequence != made_by_all + 1) continue;
      calls[r] = "called " + format_call(call);
      some = true;
    }
  }
  return some ? describe_mismatch(calls, made_by_all + 1) : std::string();
}

std::string difference_on_board(const BoardPlace& place, int rank, int size, uint64_t id, int depth,
                                int* blamed) {
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
  const std::string text = difference(rings, own, ranks, id, size_t(size), blamed);
  if (blamed) *blamed = rank_in_job(place, *blamed);
  return text;
}

std::string problem_on_board(const BoardPlace& place, int rank, int size, uint64_t id,
                             double waited_seconds, int* blamed) {
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
    } else if (failure.empty() && peer.pid > 0 && kill(peer.pid, 0) != 0 && errno == ESRCH) {
      failure = message("rank ", r, " (process ", peer.pid, ") died", doing);
      failed = r;
    } else if (failure.empty() && waited_seconds > 0 &&
               (peer.phase == Phase::finishing || peer.phase == Phase::finished)) {
      failure = message("rank ", r, " has left the program", doing);
      failed = r;
    }
  }
  int odd = -1;
  const std::string text = difference(rings, own, ranks, id, size_t(size), &odd);
  if (blamed) *blamed = rank_in_job(place, text.empty() ? failed : odd);
  if (!text.empty()) return text;
  if (blamed && failed < 0) *blamed = victim_of;  // a rank of the job already
  if (!failure.empty()) return failure;
  return waited_seconds < kStuck ? std::string() : deadlock(place, rings, id, size, blamed);
}

int rank_in_job(const BoardPlace& place, int rank) {
  if (rank >= 0 && size_t(rank) < place.ranks.size()) return place.ranks[size_t(rank)];
  if (!place.board || rank < 0 || place.slots[size_t(rank)] < 0) return rank;
  const int known = place.board->read(place.slots[size_t(rank)]).rank;
  return known < 0 ? rank : known;
}

}  // namespace catena::comm
