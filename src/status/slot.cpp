// Writing a slot of the status board. See status_board.h.
#include <time.h>

#include <bit>

#include "segment.h"

namespace catena::comm {
namespace board_detail {

std::uint64_t now_ns(int clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(time.tv_nsec);
}

namespace {

template <std::size_t kWords>
void write_failure(Sequenced<kWords>& block, int blamed, std::string_view text) {
  block.lock();
  if (block.get(kPresent) == 0) {
    block.set(kBlamed, static_cast<std::uint64_t>(static_cast<std::int64_t>(blamed)));
    block.set(kMonotonic, monotonic_ns());
    block.set(kWall, now_ns(CLOCK_REALTIME));
    block.set(kLength, put_text(block, kCharacters, text));
    block.set(kPresent, 1);
  }
  block.unlock();
}

}  // namespace
}  // namespace board_detail

std::uint64_t monotonic_ns() { return board_detail::now_ns(CLOCK_MONOTONIC); }

void StatusSlot::set_identity(int rank, int pid, std::string_view host) {
  if (!slot_) return;
  const std::uint64_t start = pid > 0 ? process_life(pid).start : 0;
  auto& block = slot_->identity;
  block.lock();
  // Plus one, so that a slot of zeros reads as "no rank".
  block.set(board_detail::kRank, static_cast<std::uint64_t>(rank + 1));
  block.set(board_detail::kPid, static_cast<std::uint64_t>(pid));
  block.set(board_detail::kProcessStart, start);
  char name[board_detail::kHostWords * 8] = {};
  std::memcpy(name, host.data(), std::min(host.size(), sizeof(name) - 1));
  board_detail::put_text(block, board_detail::kHost, std::string_view(name, sizeof(name)));
  block.unlock();
}

void StatusSlot::set_phase(Phase phase) {
  if (!slot_) return;
  slot_->life.phase_since.store(monotonic_ns(), std::memory_order_release);
  slot_->life.phase.store(static_cast<std::uint64_t>(phase), std::memory_order_release);
}

void StatusSlot::set_exit_stage(ExitStage stage) {
  if (!slot_) return;
  slot_->life.exit_since.store(monotonic_ns(), std::memory_order_release);
  slot_->life.exit_stage.store(static_cast<std::uint64_t>(stage), std::memory_order_release);
}

void StatusSlot::enter_library() {
  if (slot_) slot_->life.library_since.store(monotonic_ns(), std::memory_order_release);
}

void StatusSlot::leave_library() {
  if (slot_) slot_->life.library_since.store(0, std::memory_order_release);
}

void StatusSlot::set_limit(double seconds) {
  // Longer than a century is for ever.
  constexpr double kLongest = 4e9;
  const double limit = std::clamp(seconds, 0.0, kLongest);
  if (slot_) slot_->life.limit.store(static_cast<std::uint64_t>(limit * 1e9));
}

void StatusSlot::beat() {
  if (slot_) slot_->life.beat.store(monotonic_ns(), std::memory_order_release);
}

namespace {

// Follows changes within about eight steps. The first value is taken as it is.
void add_to_average(board_detail::Word& average, std::uint64_t value) {
  const auto before = static_cast<std::int64_t>(average.load(std::memory_order_relaxed));
  const auto now = static_cast<std::int64_t>(value);
  const std::int64_t after = before == 0 ? now : before + (now - before) / 8;
  average.store(static_cast<std::uint64_t>(after), std::memory_order_release);
}

}  // namespace

void StatusSlot::note_update() {
  if (!slot_) return;
  board_detail::Life& life = slot_->life;
  const std::uint64_t now = monotonic_ns();
  const std::uint64_t before = life.update_since.load(std::memory_order_relaxed);
  const std::uint64_t in_calls = life.in_calls.exchange(0, std::memory_order_relaxed);
  if (before != 0) {
    add_to_average(life.step, now - before);
    add_to_average(life.own_step, now - before - std::min(in_calls, now - before));
  }
  life.update_since.store(now, std::memory_order_release);
  life.updates.fetch_add(1, std::memory_order_release);
}

void StatusSlot::set_operation(std::string_view text) {
  if (!slot_) return;
  auto& block = slot_->text;
  block.lock();
  block.set(0, monotonic_ns());
  block.set(1, board_detail::put_text(block, 2, text));
  block.unlock();
}

namespace {

// Under the progress lock.
void note_latest(board_detail::Slot& slot, const CallRecord& record) {
  const std::uint64_t id = record.communicator;
  std::size_t own =
      id / board_detail::kLatestEntries % board_detail::kLatestWays;  // if all are taken
  for (std::size_t way = 0; way < board_detail::kLatestWays; ++way) {
    board_detail::Latest& entry = slot.latest[board_detail::latest_place(id, way)];
    if (entry.communicator.load(std::memory_order_relaxed) == id) {
      entry.sequence.store(record.sequence, std::memory_order_release);
      return;
    }
    if (entry.sequence.load(std::memory_order_relaxed) != 0) continue;
    own = way;
    break;
  }
  board_detail::Latest& entry = slot.latest[board_detail::latest_place(id, own)];
  entry.communicator.store(0, std::memory_order_release);
  entry.sequence.store(record.sequence, std::memory_order_release);
  entry.communicator.store(record.communicator, std::memory_order_release);
}

}  // namespace

void StatusSlot::begin_call(const CallRecord& record, std::string_view purpose) {
  if (!slot_) return;
  const auto words = std::bit_cast<board_detail::RecordWords>(record);
  auto& block = slot_->progress;
  block.lock();
  // The progress lock also admits one writer at a time to the ring.
  const std::uint64_t head = slot_->ring_head.load(std::memory_order_relaxed);
  auto& entry = slot_->ring[head % board_detail::kRingEntries];
  for (std::size_t i = 0; i < words.size(); ++i) {
    entry[i].store(words[i], std::memory_order_release);
    block.set(board_detail::kRecord + i, words[i]);
  }
  block.set(board_detail::kPurposeLength,
            board_detail::put_text(block, board_detail::kPurpose, purpose));
  note_latest(*slot_, record);
  slot_->ring_head.store(head + 1, std::memory_order_release);
  block.set(board_detail::kStarted, record.sequence);
  block.set(board_detail::kSince, monotonic_ns());
  block.set(board_detail::kInCall, 1);
  block.unlock();
}

void StatusSlot::end_call(const CallRecord& record) {
  if (!slot_) return;
  auto& block = slot_->progress;
  block.lock();
  block.set(board_detail::kFinished, record.sequence);
  // Another communicator's call may have begun meanwhile; that one is still going on.
  board_detail::RecordWords words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = block.get(board_detail::kRecord + i);
  const auto last = std::bit_cast<CallRecord>(words);
  if (last.sequence == record.sequence && last.communicator == record.communicator) {
    const std::uint64_t now = monotonic_ns();
    slot_->life.in_calls.fetch_add(now - block.get(board_detail::kSince),
                                   std::memory_order_relaxed);
    block.set(board_detail::kSince, now);
    block.set(board_detail::kInCall, 0);
  }
  block.unlock();
}

void StatusSlot::fail(std::string_view text) {
  if (!slot_) return;
  board_detail::write_failure(slot_->own_failure, -1, text);
  set_phase(Phase::failed);
}

void StatusSlot::fail_because_of_peer(int peer_rank, std::string_view text) {
  if (!slot_) return;
  board_detail::write_failure(slot_->peer_failure, peer_rank, text);
  set_phase(Phase::failed);
}

}  // namespace catena::comm
