// The status board of this process, and what it tells about the other ranks of the host.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <mutex>
#include <unordered_map>

#include "catena/core/log.h"
#include "communicator_state.h"

namespace catena::comm {

namespace {

struct OwnBoard {
  std::shared_ptr<StatusBoard> board;
  int slot = 0;
  StatusSlot own_slot() const { return board->slot(slot); }
};

OwnBoard& process_board() {
  static auto* own = new OwnBoard;  // never destroyed: the exit handler uses it
  return *own;
}
std::mutex board_mutex;  // of process_board()
std::terminate_handler previous_terminate = nullptr;

// An uncaught exception is written down before the process goes.
[[noreturn]] void note_and_terminate() {
  if (const std::exception_ptr current = std::current_exception();
      current && process_board().board) {
    try {
      std::rethrow_exception(current);
    } catch (const std::exception& error) {
      process_board().own_slot().fail(error.what());
    } catch (...) {
      process_board().own_slot().fail("an exception that is not a std::exception");
    }
  }
  if (previous_terminate) previous_terminate();
  std::abort();
}

// Left behind when the program calls exit, so that the other ranks and the launcher see why.
void note_exit(int status, void*) {
  StatusSlot slot = process_board().own_slot();
  slot.set_phase(Phase::finishing);
  if (status != 0) slot.fail(message("exit code ", status));
}

std::string host_name() {
  char text[256] = {};
  gethostname(text, sizeof text - 1);
  return text;
}

void adopt(StatusBoard&& board, int slot, int rank) {
  process_board() = {std::make_shared<StatusBoard>(std::move(board)), slot};
  process_board().own_slot().set_identity(rank, getpid(), host_name());
  on_exit(note_exit, nullptr);  // as atexit, with the exit code
  previous_terminate = std::set_terminate(note_and_terminate);
}

// A board for the ranks of a job that plain mpirun started: the first rank of each host names it.
struct Proposal {
  char name[48];
};

void make_common_board(Communicator& comm) {
  const Topology& t = comm.topology();
  Proposal mine{};
  std::snprintf(
      mine.name, sizeof mine.name, "/catena-%d-%lx", getpid(),
      static_cast<unsigned long>(reinterpret_cast<uintptr_t>(&mine) ^ uint64_t(time(nullptr))));
  const auto proposals = comm.all_gather_object(mine);
  int leader = 0;
  while (t.hosts[size_t(leader)] != t.inter_rank) ++leader;
  const std::string name = proposals[size_t(leader)].name;
  StatusBoard board = StatusBoard::create(name, t.intra_size);
  comm.all_gather_object(t.intra_rank);  // all of the host have it open
  if (comm.rank() == leader) StatusBoard::unlink(name);
  adopt(std::move(board), t.intra_rank, comm.rank());
}

}  // namespace

void note_failure(std::string_view text) {
  // Another thread may hold it for as long as it waits for the other ranks.
  const std::unique_lock lock(board_mutex, std::try_to_lock);
  if (lock.owns_lock() && process_board().board) return process_board().own_slot().fail(text);
  // Before the first communicator; without catena-run there is nobody to tell.
  if (const char* name = std::getenv("CATENA_STATUS_BOARD"); name && *name)
    StatusBoard::attach_from_environment().own_slot().fail(text);
}

BoardPlace find_board(Communicator& comm) {
  std::lock_guard lock(board_mutex);
  // All ranks were started alike, so all take the same branch.
  OwnBoard& own = process_board();
  if (!own.board) {
    const char* name = std::getenv("CATENA_STATUS_BOARD");
    if (name && *name) {
      StatusBoard board = StatusBoard::attach_from_environment();
      const int slot = board.local_rank();
      adopt(std::move(board), slot, comm.rank());
    } else {
      make_common_board(comm);
    }
  }
  BoardPlace place{own.board, {}};
  const auto slots = comm.all_gather_object(own.slot);
  for (int r = 0; r < comm.size(); ++r) {
    const bool here = comm.topology().hosts[size_t(r)] == comm.inter_rank();
    place.slots.push_back(here ? slots[size_t(r)] : -1);
  }
  own.own_slot().set_phase(Phase::running);
  return place;
}

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

// Seconds after which a call that has not moved is looked at.
constexpr double kStuck = 2;

// All ranks have been in calls of this communicator for a while and no two of them can ever meet.
// Calls in groups (CallRecord::reserved) are left alone: which of them are done is not recorded.
std::string deadlock(const BoardPlace& place, const Rings& rings, uint64_t id, int size) {
  if (int(rings.size()) != size) return {};  // ranks on other hosts
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const uint64_t now_ns = uint64_t(now.tv_sec) * 1'000'000'000u + uint64_t(now.tv_nsec);
  std::vector<CallRecord> current;
  std::vector<std::string> calls;
  uint64_t sequence = UINT64_MAX;
  for (int r = 0; r < size; ++r) {
    const SlotSnapshot peer = place.board->read(place.slots[size_t(r)]);
    if (!peer.in_call || rings[size_t(r)].empty()) return {};
    if (double(now_ns - peer.operation_started_ns) < kStuck * 1e9) return {};
    const CallRecord call = rings[size_t(r)].back();
    if (call.reserved || (!is_message(call) && call.communicator != id)) return {};
    for (const CallRecord& other : current)
      if (is_pair(call, other)) return {};
    current.push_back(call);
    calls.push_back("waits in " + format_call(call));
    sequence = std::min(sequence, call.sequence);
  }
  const auto is_first = [&](const CallRecord& call) { return call.hash == current[0].hash; };
  if (std::all_of(current.begin(), current.end(), is_first)) return {};  // one slow collective
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
  int failed = -1;
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
    if (peer.own_failure.present && peer.own_failure.monotonic_ns < failed_at) {
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
  if (blamed) *blamed = failed;
  const std::string text = difference(rings, own, ranks, id, size_t(size), blamed);
  if (blamed) *blamed = rank_in_job(place, *blamed);
  if (!text.empty() || !failure.empty()) return !text.empty() ? text : failure;
  return waited_seconds < kStuck ? std::string() : deadlock(place, rings, id, size);
}

int rank_in_job(const BoardPlace& place, int rank) {
  if (!place.board || rank < 0 || place.slots[size_t(rank)] < 0) return rank;
  const int known = place.board->read(place.slots[size_t(rank)]).rank;
  return known < 0 ? rank : known;
}

}  // namespace catena::comm
