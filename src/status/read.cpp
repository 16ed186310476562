// Reading a slot of the status board, also while its rank writes and after that was killed. See
// status_board.h.
#include <bit>
#include <utility>

#include "catena/core/printable.h"
#include "segment.h"

namespace catena::comm {

using board_detail::Slot;

namespace board_detail {
namespace {

template <std::size_t kWords>
bool read_failure(const Sequenced<kWords>& block, Failure& failure) {
  std::array<std::uint64_t, kWords> words;
  const bool consistent = block.read(words);
  failure.present = words[kPresent] != 0;
  if (!failure.present) return consistent;
  failure.blamed_rank = static_cast<int>(static_cast<std::int64_t>(words[kBlamed]));
  failure.monotonic_ns = words[kMonotonic];
  failure.wall_ns = words[kWall];
  failure.text = printable(get_text(words, kCharacters, words[kLength]));
  return consistent;
}

void read_identity(const Slot& slot, SlotSnapshot& snapshot) {
  std::array<std::uint64_t, kHost + kHostWords> words;
  snapshot.torn |= !slot.identity.read(words);
  snapshot.rank = static_cast<int>(words[kRank]) - 1;
  snapshot.pid = static_cast<int>(words[kPid]);
  snapshot.process_start = words[kProcessStart];
  snapshot.host = printable(get_text(words, kHost, kHostWords * 8).c_str());
}

// A time before the word that says whether it counts would be too old, see Life.
void read_life(const Life& life, SlotSnapshot& snapshot) {
  const auto get = [](const Word& word) { return word.load(std::memory_order_acquire); };
  snapshot.phase = static_cast<Phase>(get(life.phase));
  snapshot.phase_since_ns = get(life.phase_since);
  snapshot.exit_stage = static_cast<ExitStage>(get(life.exit_stage));
  snapshot.exit_since_ns = get(life.exit_since);
  snapshot.library_since_ns = get(life.library_since);
  snapshot.limit_ns = get(life.limit);
  snapshot.beat_ns = get(life.beat);
  snapshot.updates = get(life.updates);
  snapshot.update_since_ns = get(life.update_since);
  snapshot.step_ns = get(life.step);
  snapshot.own_step_ns = get(life.own_step);
}

}  // namespace
}  // namespace board_detail

SlotSnapshot StatusBoard::read(int local_rank) const {
  const Slot& slot = checked_slot(local_rank);
  SlotSnapshot snapshot;
  board_detail::read_identity(slot, snapshot);
  board_detail::read_life(slot.life, snapshot);

  std::array<std::uint64_t, 2 + board_detail::kTextWords> text;
  snapshot.torn |= !slot.text.read(text);
  snapshot.operation = printable(board_detail::get_text(text, 2, text[1]));
  snapshot.operation_started_ns = text[0];

  std::array<std::uint64_t, board_detail::kPurpose + board_detail::kPurposeWords> progress;
  snapshot.torn |= !slot.progress.read(progress);
  snapshot.started_sequence = progress[board_detail::kStarted];
  snapshot.finished_sequence = progress[board_detail::kFinished];
  snapshot.in_call = progress[board_detail::kInCall] != 0;
  if (snapshot.started_sequence > 0) {
    board_detail::RecordWords words;
    std::copy_n(progress.begin() + board_detail::kRecord, words.size(), words.begin());
    snapshot.last_call = format_call(std::bit_cast<CallRecord>(words));
    snapshot.purpose = printable(board_detail::get_text(progress, board_detail::kPurpose,
                                                        progress[board_detail::kPurposeLength]));
    if (snapshot.in_call) {
      const std::string around = std::exchange(snapshot.operation, snapshot.last_call);
      if (!around.empty()) snapshot.operation.append(" in ").append(around);
      snapshot.call_since_ns = snapshot.operation_started_ns = progress[board_detail::kSince];
    } else {
      snapshot.idle_since_ns = progress[board_detail::kSince];
    }
  }
  snapshot.torn |= !board_detail::read_failure(slot.own_failure, snapshot.own_failure);
  snapshot.torn |= !board_detail::read_failure(slot.peer_failure, snapshot.peer_failure);
  return snapshot;
}

std::vector<CallRecord> StatusBoard::calls(int local_rank, int most) const {
  const Slot& slot = checked_slot(local_rank);
  const std::uint64_t head = slot.ring_head.load(std::memory_order_acquire);
  const auto wanted = static_cast<std::uint64_t>(std::clamp(most, 0, kRingSize));
  const std::uint64_t first = head > wanted ? head - wanted : 0;
  std::vector<CallRecord> calls(head - first);
  for (std::uint64_t at = first; at < head; ++at) {
    board_detail::RecordWords words;
    const auto& entry = slot.ring[at % board_detail::kRingEntries];
    for (std::size_t i = 0; i < words.size(); ++i)
      words[i] = entry[i].load(std::memory_order_acquire);
    calls[at - first] = std::bit_cast<CallRecord>(words);
  }
  // Drop what the writer overwrote meanwhile, the entry that it may be writing now included.
  const std::uint64_t later = slot.ring_head.load(std::memory_order_acquire) + 1;
  const std::uint64_t oldest =
      later > board_detail::kRingEntries ? later - board_detail::kRingEntries : 0;
  if (oldest > first) {
    const auto lost = std::min<std::uint64_t>(oldest - first, calls.size());
    calls.erase(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(lost));
  }
  return calls;
}

std::optional<std::uint64_t> StatusBoard::last_sequence(int local_rank,
                                                        std::uint64_t communicator) const {
  const auto& latest = checked_slot(local_rank).latest;
  for (std::size_t way = 0; way < board_detail::kLatestWays; ++way) {
    const board_detail::Latest& entry = latest[board_detail::latest_place(communicator, way)];
    const std::uint64_t owner = entry.communicator.load(std::memory_order_acquire);
    const std::uint64_t sequence = entry.sequence.load(std::memory_order_acquire);
    // Somebody else is about to take the place.
    if (owner != entry.communicator.load(std::memory_order_acquire)) return std::nullopt;
    if (owner == communicator) return sequence;
    if (owner == 0) return sequence == 0 ? std::optional<std::uint64_t>(0) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace catena::comm
