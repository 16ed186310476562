// The layout of a status board in memory, and the texts in it. Private to the files that implement
// status_board.h. Change kMagic with the layout.
#pragma once

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "status_board.h"

namespace catena::comm::board_detail {

using Word = std::atomic<std::uint64_t>;
static_assert(Word::is_always_lock_free && sizeof(Word) == 8);

// Words under a sequence lock. An odd version means that a write is going on. Word stores are
// releases and word loads are acquires, which orders them with the versions without fences
// (ThreadSanitizer does not know fences) and costs nothing on x86.
template <std::size_t kWords>
struct alignas(64) Sequenced {
  Word version;
  std::array<Word, kWords> words;

  void lock() {
    // A process that was forked from the rank may have died in the middle of a write; the lock is
    // then taken over.
    constexpr int kPatience = 1'000'000;
    for (int tries = 0;; ++tries) {
      std::uint64_t now = version.load(std::memory_order_relaxed);
      const std::uint64_t odd = now % 2 == 0 ? now + 1 : now + 2;
      if ((now % 2 == 0 || tries > kPatience) &&
          version.compare_exchange_weak(now, odd, std::memory_order_acquire))
        return;
      if (tries % 64 == 63) sched_yield();
    }
  }
  void unlock() {
    version.store(version.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  void set(std::size_t index, std::uint64_t value) {
    words[index].store(value, std::memory_order_release);
  }
  std::uint64_t get(std::size_t index) const {
    return words[index].load(std::memory_order_relaxed);
  }

  // False when no consistent copy could be had: the writer died while it wrote.
  bool read(std::array<std::uint64_t, kWords>& copy) const {
    constexpr int kTries = 10000;
    for (int tries = 0; tries < kTries; ++tries) {
      const std::uint64_t before = version.load(std::memory_order_acquire);
      for (std::size_t i = 0; i < kWords; ++i) copy[i] = words[i].load(std::memory_order_acquire);
      if (before % 2 == 0 && version.load(std::memory_order_relaxed) == before) return true;
      if (tries % 64 == 63) sched_yield();
    }
    return false;
  }
};

constexpr std::size_t kTextWords = 16;      // operation: 128 bytes
constexpr std::size_t kFailureWords = 128;  // failure text: 1 KiB
constexpr std::size_t kHostWords = 8;
constexpr std::size_t kPurposeWords = 8;  // what a call serves: 64 bytes
constexpr std::size_t kRecordWords = sizeof(CallRecord) / 8;
using RecordWords = std::array<std::uint64_t, kRecordWords>;

// More entries than are ever handed out, so that the one being written is not among those read.
constexpr std::size_t kRingEntries = StatusBoard::kRingSize + 64;

// The last call of a rank on each of its communicators, and in each direction with each peer: a
// hash table in which an id has one of kLatestWays places, the first that was free. Where none is,
// a later id takes the place of an earlier one.
constexpr std::size_t kLatestEntries = 512, kLatestWays = 8;
struct Latest {
  Word communicator;  // 0: nobody
  Word sequence;      // 0: nobody has ever been here
};
constexpr std::size_t latest_place(std::uint64_t communicator, std::size_t way) {
  return (communicator + way) % kLatestEntries;
}

enum IdentityWord : std::size_t { kRank, kPid, kProcessStart, kHost };
// Text: time, length, characters.
// Progress: started, finished, when the last call began or, after it, ended, in_call, then the
// record of the last call, the length of its purpose, and its characters.
enum ProgressWord : std::size_t {
  kStarted,
  kFinished,
  kSince,
  kInCall,
  kRecord,
  kPurposeLength = kRecord + kRecordWords,
  kPurpose
};
// Failure: present, blamed rank, monotonic, wall, length, characters.
enum FailureWord : std::size_t { kPresent, kBlamed, kMonotonic, kWall, kLength, kCharacters };

// Signs of life, each a time of CLOCK_MONOTONIC in ns that its thread writes alone. A time is
// written before the word that it belongs to and read after it, so it is never older than that.
struct Life {
  Word phase;
  Word phase_since;
  Word exit_stage;
  Word exit_since;
  Word library_since;
  Word limit;  // a length in ns
  Word beat;
  // Of optimizers: how many, when the last one was, and lengths in ns: the time between two as of
  // late, the same without calls, and what calls have taken since the last update.
  Word updates;
  Word update_since;
  Word step;
  Word own_step;
  Word in_calls;
};

std::uint64_t now_ns(int clock);

struct Slot {
  Sequenced<kHost + kHostWords> identity;
  alignas(64) Life life;
  Sequenced<2 + kTextWords> text;
  Sequenced<kPurpose + kPurposeWords> progress;
  Sequenced<kCharacters + kFailureWords> own_failure;
  Sequenced<kCharacters + kFailureWords> peer_failure;
  alignas(64) Word ring_head;  // calls ever entered
  std::array<std::array<Word, kRecordWords>, kRingEntries> ring;
  std::array<Latest, kLatestEntries> latest;
};

// All zero is a valid empty board, so a new file needs no initialisation that others would have
// to wait for; the header words are the same whoever writes them.
struct Segment {
  Word magic;
  Word slot_count;
  Word arrived;
  alignas(64) Slot slots[1];  // slot_count of them

  static std::size_t bytes(int slots) {
    return sizeof(Segment) + sizeof(Slot) * static_cast<std::size_t>(slots - 1);
  }
};

// The last byte is the version of the layout.
constexpr std::uint64_t kMagic = 0x6361'7465'6e61'0009;

// Writes `text` into words from `first` on; returns the number of bytes that fitted.
template <std::size_t kWords>
std::size_t put_text(Sequenced<kWords>& block, std::size_t first, std::string_view text) {
  text = text.substr(0, (kWords - first) * 8);
  for (std::size_t at = 0; at < text.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, std::min<std::size_t>(8, text.size() - at));
    block.set(first + at / 8, word);
  }
  return text.size();
}

template <std::size_t kWords>
std::string get_text(const std::array<std::uint64_t, kWords>& words, std::size_t first,
                     std::uint64_t length) {
  const std::size_t room = (kWords - first) * 8;
  const char* begin = reinterpret_cast<const char*>(words.data() + first);
  return std::string(begin, std::min<std::size_t>(length, room));
}

}  // namespace catena::comm::board_detail
