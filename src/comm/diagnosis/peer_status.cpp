// Findings of the status board about the other ranks of this host: calls that differ, ranks that
// failed or left.
#include "peer_status.h"

#include "catena/comm/transport.h"
#include "catena/core/log.h"
#include "deadlock.h"
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

// Seconds of waiting after which a deadlock is looked for here; transports that poll look for it
// alone earlier. What is one does not depend on it.
constexpr double kStuck = 2;

}  // namespace

std::string difference_on_board(const BoardPlace& place, int rank, int size, uint64_t id, int depth,
                                bool* came) {
  *came = true;
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
  const std::string text = difference_between(rings, own, ranks, id, size_t(size), nullptr);
  *came = all_came(rings, own, ranks, id, size_t(depth));
  return text.empty() ? text : text + describe_part(place);
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
  if (!text.empty()) return text + describe_part(place);
  if (culprit && failed < 0) *culprit = victim_of;  // a rank of the job already
  // What a victim says is of the communicator in which it noticed.
  if (!failure.empty()) return failed < 0 ? failure : failure + describe_part(place);
  if (culprit) *culprit = -1;
  return waited_seconds < kStuck ? std::string() : deadlock_on_board(place, size, id, culprit);
}

namespace {

// -1 where this host does not know it.
int known_rank(const BoardPlace& place, int rank) {
  if (size_t(rank) < place.ranks.size()) return place.ranks[size_t(rank)];
  if (!place.board || place.slots[size_t(rank)] < 0) return -1;
  return place.board->read(place.slots[size_t(rank)]).rank;
}

// Parts with more ranks than this are usually regular, and a list of them would be long.
constexpr size_t kListed = 8;

// "rank r is rank 2 + 4 r of the job"; "" where it is not so.
std::string describe_regular(const std::vector<int>& in_job) {
  const int first = in_job[0], step = in_job[1] - first;
  for (size_t r = 0; r < in_job.size(); ++r)
    if (in_job[r] != first + int(r) * step) return {};
  return message("rank r is rank ", first, " + ", step, " r of the job");
}

// "0, 1 are ranks 2, 3 of the job"
std::string list_part(const std::vector<int>& in_job, const std::vector<std::string>& coordinates) {
  std::string own, job;
  int known = 0;
  for (size_t r = 0; r < in_job.size(); ++r) {
    if (in_job[r] < 0) continue;
    const char* comma = known++ > 0 ? ", " : "";
    own += coordinates.empty() ? message(comma, r) : message(comma, r, " (", coordinates[r], ")");
    job += message(comma, in_job[r]);
  }
  return message(own, known > 1 ? " are ranks " : " is rank ", job, " of the job");
}

}  // namespace

int rank_in_job(const BoardPlace& place, int rank) {
  if (rank < 0) return rank;
  const int known = known_rank(place, rank);
  return known < 0 ? rank : known;
}

std::string describe_part(const std::vector<int>& in_job,
                          const std::vector<std::string>& coordinates) {
  bool differs = false;
  for (size_t r = 0; r < in_job.size(); ++r) differs |= in_job[r] >= 0 && in_job[r] != int(r);
  if (!differs) return {};
  std::string ranks = in_job.size() > kListed ? describe_regular(in_job) : std::string();
  if (ranks.empty()) ranks = list_part(in_job, coordinates);
  return message(" (ranks of a part of the job: ", ranks, ")");
}

std::string describe_part(const BoardPlace& place) {
  std::vector<int> in_job;
  for (size_t r = 0; r < place.slots.size(); ++r) in_job.push_back(known_rank(place, int(r)));
  return describe_part(in_job, place.coordinates);
}

}  // namespace catena::comm
