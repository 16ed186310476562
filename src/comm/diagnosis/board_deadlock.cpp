// Ranks that wait for each other, according to the records of this host's ranks.
#include <algorithm>

#include "catena/core/error.h"
#include "deadlock.h"

namespace catena::comm {

namespace {

constexpr int kLargestGroup = 256;  // of larger ones the last calls are looked at

// The records of all ranks at one moment; of ranks of other hosts there are none.
class BoardWaits {
 public:
  BoardWaits(const BoardPlace& place, int size, uint64_t id)
      : place_(place), id_(id), rings_(size_t(size)), open_(size_t(size)) {
    for (int r = 0; r < size; ++r) {
      if (place.slots[size_t(r)] < 0) continue;
      rings_[size_t(r)] = place.board->calls(place.slots[size_t(r)], kLargestGroup);
      open_[size_t(r)] = open_calls(r);
    }
  }

  // For every rank the ranks that have not begun a call that it is in.
  std::vector<std::vector<int>> waits() const {
    std::vector<std::vector<int>> waits(rings_.size());
    for (size_t r = 0; r < rings_.size(); ++r)
      for (const CallRecord& call : open_[r])
        for (int other = 0; other < int(rings_.size()); ++other)
          if (takes_part(other, call) && !has_begun(other, call)) waits[r].push_back(other);
    return waits;
  }

  // Whether it waits for the others to close the communicator.
  bool closes(int rank) const {
    const std::vector<CallRecord>& open = open_[size_t(rank)];
    return !open.empty() && is_close(open[0].call);
  }

  // Of the open calls of a stuck rank, the one that it is stuck in.
  CallRecord stuck_call(int rank, const std::vector<int>& stuck) const {
    for (const CallRecord& call : open_[size_t(rank)])
      for (const int other : stuck)
        if (takes_part(other, call) && !has_begun(other, call)) return call;
    return open_[size_t(rank)].back();
  }

  // What the call of a stuck rank is called. A group serves what its last call does, whose purpose
  // is on the board.
  CallName name_of(int rank, const CallRecord& call) const {
    const std::string purpose = place_.board->read(place_.slots[size_t(rank)]).purpose;
    const std::string text = format_call(call);
    if (purpose.empty()) return {text, false};
    return {message(text, ", in ", purpose), true};
  }

  // Whether these ranks have begun and ended nothing since. They were all in their calls then, at
  // one moment.
  bool still(const std::vector<int>& ranks) const {
    return std::all_of(ranks.begin(), ranks.end(), [&](int r) { return is_in_last_call(r); });
  }

 private:
  bool is_in_last_call(int rank) const {
    const int slot = place_.slots[size_t(rank)];
    const std::vector<CallRecord>& ring = rings_[size_t(rank)];
    const std::vector<CallRecord> now = place_.board->calls(slot, 1);
    return !ring.empty() && !now.empty() && now[0].hash == ring.back().hash &&
           now[0].communicator == ring.back().communicator && place_.board->read(slot).in_call;
  }

  bool belongs(int rank, const CallRecord& record) const {
    const int peer = record.call.root;
    const uint64_t own = !is_message(record)               ? id_
                         : record.call.op == CommOp::kSend ? pair_id(id_, rank, peer)
                                                           : pair_id(id_, peer, rank);
    return own == record.communicator;
  }

  // The calls of the communicator that a rank is in: one, or those of a group. Of calls of earlier
  // groups among them all ranks have begun theirs. None while it is in none, in one of another
  // communicator, or while a group is still being made.
  std::vector<CallRecord> open_calls(int rank) const {
    const std::vector<CallRecord>& ring = rings_[size_t(rank)];
    if (!is_in_last_call(rank) || !belongs(rank, ring.back())) return {};
    const CallKind kind = ring.back().call.kind;
    if (kind == CallKind::kGrouped) return {};
    if (kind != CallKind::kGroupEnd) return {ring.back()};
    std::vector<CallRecord> calls;
    for (auto call = ring.rbegin(); call != ring.rend() && is_grouped(call->call); ++call)
      if (belongs(rank, *call)) calls.push_back(*call);
    return calls;
  }

  bool takes_part(int rank, const CallRecord& call) const {
    return place_.slots[size_t(rank)] >= 0 && (!is_message(call) || rank == call.call.root);
  }

  // True as well when it is not known.
  bool has_begun(int rank, const CallRecord& call) const {
    const auto last = place_.board->last_sequence(place_.slots[size_t(rank)], call.communicator);
    return !last || *last >= call.sequence;
  }

  const BoardPlace& place_;
  uint64_t id_;
  std::vector<std::vector<CallRecord>> rings_;  // the last calls of every rank
  std::vector<std::vector<CallRecord>> open_;
};

}  // namespace

std::string deadlock_on_board(const BoardPlace& place, int size, uint64_t id, int* culprit) {
  if (culprit) *culprit = -1;
  if (!place.board) return {};
  const BoardWaits board(place, size, id);
  const std::vector<int> stuck = stuck_ranks(board.waits(), [&](int r) { return board.closes(r); });
  if (stuck.empty() || !board.still(stuck)) return {};
  std::vector<std::optional<CallRecord>> calls(static_cast<size_t>(size));
  std::vector<CallName> names(calls.size());
  for (const int r : stuck) {
    calls[size_t(r)] = board.stuck_call(r, stuck);
    names[size_t(r)] = board.name_of(r, *calls[size_t(r)]);
  }
  if (culprit) *culprit = rank_in_job(place, odd_rank(calls));
  return describe_deadlock(calls, names) + describe_part(place);
}

}  // namespace catena::comm
