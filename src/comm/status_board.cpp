#include "status_board.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace catena::comm {
namespace board_detail {

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
constexpr std::size_t kRecordWords = sizeof(CallRecord) / 8;
using RecordWords = std::array<std::uint64_t, kRecordWords>;

// More entries than are ever handed out, so that the one being written is not among those read.
constexpr std::size_t kRingEntries = StatusBoard::kRingSize + 64;

// Identity: rank, pid, host. Text: time, length, characters.
// Progress: started, finished, time, in_call, then the record of the last call.
enum ProgressWord : std::size_t { kStarted, kFinished, kSince, kInCall, kRecord };
// Failure: present, blamed rank, monotonic, wall, length, characters.
enum FailureWord : std::size_t { kPresent, kBlamed, kMonotonic, kWall, kLength, kCharacters };

struct Slot {
  Sequenced<2 + kHostWords> identity;
  Word phase;
  Sequenced<2 + kTextWords> text;
  Sequenced<kRecord + kRecordWords> progress;
  Sequenced<kCharacters + kFailureWords> own_failure;
  Sequenced<kCharacters + kFailureWords> peer_failure;
  alignas(64) Word ring_head;  // calls ever entered
  std::array<std::array<Word, kRecordWords>, kRingEntries> ring;
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
constexpr std::uint64_t kMagic = 0x6361'7465'6e61'0001;

namespace {

std::uint64_t now_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(time.tv_nsec);
}

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

template <std::size_t kWords>
void write_failure(Sequenced<kWords>& block, int blamed, std::string_view text) {
  block.lock();
  if (block.get(kPresent) == 0) {
    block.set(kBlamed, static_cast<std::uint64_t>(static_cast<std::int64_t>(blamed)));
    block.set(kMonotonic, now_ns(CLOCK_MONOTONIC));
    block.set(kWall, now_ns(CLOCK_REALTIME));
    block.set(kLength, put_text(block, kCharacters, text));
    block.set(kPresent, 1);
  }
  block.unlock();
}

template <std::size_t kWords>
bool read_failure(const Sequenced<kWords>& block, Failure& failure) {
  std::array<std::uint64_t, kWords> words;
  const bool consistent = block.read(words);
  failure.present = words[kPresent] != 0;
  if (!failure.present) return consistent;
  failure.blamed_rank = static_cast<int>(static_cast<std::int64_t>(words[kBlamed]));
  failure.monotonic_ns = words[kMonotonic];
  failure.wall_ns = words[kWall];
  failure.text = get_text(words, kCharacters, words[kLength]);
  return consistent;
}

}  // namespace
}  // namespace board_detail

using board_detail::Segment;
using board_detail::Slot;

namespace {

template <std::size_t kCount>
const char* name_at(const char* const (&names)[kCount], std::size_t index) {
  return index < kCount ? names[index] : "unknown";
}

[[noreturn]] void throw_system_error(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// A shared-memory object is "/name"; anything with a second slash is a path.
int open_segment(const std::string& name, int flags) {
  const bool path = name.find('/', 1) != std::string::npos;
  return path ? ::open(name.c_str(), flags | O_CLOEXEC, 0600)
              : ::shm_open(name.c_str(), flags | O_CLOEXEC, 0600);
}

// Whether `name` still leads to the file that is open as `fd`.
bool name_leads_to(const std::string& name, int fd) {
  struct stat named {};
  struct stat opened {};
  const int again = open_segment(name, O_RDWR);
  if (again < 0) return false;
  const bool same = fstat(again, &named) == 0 && fstat(fd, &opened) == 0 &&
                    named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
  ::close(again);
  return same;
}

// Opens or makes the object and marks it as in use with a shared lock. Between the two a cleaner
// may have removed it, hence the second look.
int open_and_lock(const std::string& name) {
  for (;;) {
    const int fd = open_segment(name, O_RDWR | O_CREAT);
    if (fd < 0) throw_system_error("status board: cannot create shared memory " + name);
    if (flock(fd, LOCK_SH) == 0 && name_leads_to(name, fd)) return fd;
    ::close(fd);
  }
}

}  // namespace

const char* phase_name(Phase phase) {
  static constexpr const char* kNames[] = {"not started", "launched", "joining", "running",
                                           "finishing",   "finished", "failed"};
  return name_at(kNames, static_cast<std::size_t>(phase));
}

const char* call_op_name(std::uint8_t op) {
  static constexpr const char* kNames[] = {
      "none",    "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "gather",
      "scatter", "all_to_all", "send",           "recv",       "barrier",   "split",  "object"};
  return name_at(kNames, op);
}

const char* call_dtype_name(std::uint8_t dtype) {
  static constexpr const char* kNames[] = {"bool",     "int8",    "int16",  "int32",  "int64",
                                           "uint8",    "uint16",  "uint32", "uint64", "float16",
                                           "bfloat16", "float32", "float64"};
  return name_at(kNames, dtype);
}

const char* call_reduction_name(std::uint8_t reduction) {
  static constexpr const char* kNames[] = {"sum", "mean", "min", "max", "product", "weighted"};
  return name_at(kNames, reduction);
}

std::uint64_t fold_call(std::uint64_t previous, const CallRecord& record) {
  // One multiply-xorshift round a field: every bit of every field reaches every bit of the hash.
  const auto mix = [](std::uint64_t hash, std::uint64_t value) {
    hash = (hash ^ value) * 0x9e37'79b9'7f4a'7c15u;
    return hash ^ (hash >> 29);
  };
  const std::uint64_t codes = std::uint64_t{record.op} | std::uint64_t{record.dtype} << 8 |
                              std::uint64_t{record.reduction} << 16 |
                              std::uint64_t{static_cast<std::uint32_t>(record.root)} << 32;
  std::uint64_t hash = mix(previous + 0x2545'f491'4f6c'dd1du, record.sequence);
  hash = mix(hash, codes);
  hash = mix(hash, record.count);
  return mix(hash, record.communicator);
}

std::string format_call(const CallRecord& record) {
  std::string text = call_op_name(record.op);
  text.append(" #").append(std::to_string(record.sequence));
  const auto op = static_cast<CallOp>(record.op);
  const bool reduces =
      op == CallOp::all_reduce || op == CallOp::reduce_scatter || op == CallOp::reduce;
  if (reduces) text.append(" ").append(call_reduction_name(record.reduction));
  if (op != CallOp::barrier && op != CallOp::split) {
    text.append(" ").append(call_dtype_name(record.dtype));
    text.append("[").append(std::to_string(record.count)).append("]");
  }
  if (record.root >= 0) text.append(" root ").append(std::to_string(record.root));
  return text;
}

CallRecord CallHistory::next(CallOp op, std::uint8_t dtype, std::uint8_t reduction,
                             std::int32_t root, std::uint64_t count) {
  CallRecord record;
  record.sequence = ++sequence_;
  record.op = static_cast<std::uint8_t>(op);
  record.dtype = dtype;
  record.reduction = reduction;
  record.root = root;
  record.count = count;
  record.communicator = communicator_;
  record.hash = hash_ = fold_call(hash_, record);
  return record;
}

std::optional<CallDifference> first_different_call(
    const std::vector<std::vector<CallRecord>>& rings, std::uint64_t communicator) {
  std::map<std::uint64_t, std::vector<std::optional<CallRecord>>> by_sequence;
  for (std::size_t ring = 0; ring < rings.size(); ++ring) {
    for (const CallRecord& record : rings[ring]) {
      if (record.communicator != communicator) continue;
      auto& calls = by_sequence[record.sequence];
      calls.resize(rings.size());
      calls[ring] = record;
    }
  }
  for (const auto& [sequence, calls] : by_sequence) {
    const CallRecord* first = nullptr;
    bool hashes_differ = false;
    bool calls_differ = false;
    for (const auto& call : calls) {
      if (!call) continue;
      if (!first) first = &*call;
      hashes_differ |= call->hash != first->hash;
      // The same starting value on both sides compares this call alone.
      calls_differ |= fold_call(0, *call) != fold_call(0, *first);
    }
    // Equal calls with different hashes: the cause is older than the rings.
    if (hashes_differ) return CallDifference{sequence, calls_differ, calls};
  }
  return std::nullopt;
}

void StatusSlot::set_identity(int rank, int pid, std::string_view host) {
  if (!slot_) return;
  auto& block = slot_->identity;
  block.lock();
  // Plus one, so that a slot of zeros reads as "no rank".
  block.set(0, static_cast<std::uint64_t>(rank + 1));
  block.set(1, static_cast<std::uint64_t>(pid));
  char name[board_detail::kHostWords * 8] = {};
  std::memcpy(name, host.data(), std::min(host.size(), sizeof(name) - 1));
  board_detail::put_text(block, 2, std::string_view(name, sizeof(name)));
  block.unlock();
}

void StatusSlot::set_phase(Phase phase) {
  if (slot_) slot_->phase.store(static_cast<std::uint64_t>(phase), std::memory_order_release);
}

void StatusSlot::set_operation(std::string_view text) {
  if (!slot_) return;
  auto& block = slot_->text;
  block.lock();
  block.set(0, board_detail::now_ns(CLOCK_MONOTONIC));
  block.set(1, board_detail::put_text(block, 2, text));
  block.unlock();
}

void StatusSlot::begin_call(const CallRecord& record) {
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
  slot_->ring_head.store(head + 1, std::memory_order_release);
  block.set(board_detail::kStarted, record.sequence);
  block.set(board_detail::kSince, board_detail::now_ns(CLOCK_MONOTONIC));
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
  if (last.sequence == record.sequence && last.communicator == record.communicator)
    block.set(board_detail::kInCall, 0);
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

StatusBoard::StatusBoard(Segment* segment, std::size_t size, int fd, int local_rank)
    : segment_(segment), size_(size), fd_(fd), local_rank_(local_rank) {}

StatusBoard::StatusBoard(StatusBoard&& other) noexcept { *this = std::move(other); }

StatusBoard& StatusBoard::operator=(StatusBoard&& other) noexcept {
  std::swap(segment_, other.segment_);
  std::swap(size_, other.size_);
  std::swap(fd_, other.fd_);
  std::swap(local_rank_, other.local_rank_);
  return *this;
}

StatusBoard::~StatusBoard() {
  if (segment_) munmap(segment_, size_);
  if (fd_ >= 0) ::close(fd_);
}

StatusBoard StatusBoard::map(int fd, std::size_t size, const std::string& name) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    const int error = errno;
    ::close(fd);
    errno = error;
    throw_system_error("status board: cannot map " + name);
  }
  return StatusBoard(static_cast<Segment*>(memory), size, fd, 0);
}

StatusBoard StatusBoard::create(const std::string& name, int slots) {
  if (slots < 1 || slots > kMaxSlots)
    throw std::invalid_argument("status board: " + std::to_string(slots) +
                                " slots asked for, expected 1 to " + std::to_string(kMaxSlots));
  const int fd = open_and_lock(name);
  const std::size_t size = Segment::bytes(slots);
  // Room is taken now: a segment that only promises its size kills its writers by SIGBUS when
  // /dev/shm is full.
  const int error = posix_fallocate(fd, 0, static_cast<off_t>(size));
  if (error != 0) {
    ::close(fd);
    unlink(name);
    throw std::system_error(error, std::generic_category(),
                            "status board: no room for " + std::to_string(size) +
                                " bytes of shared memory (containers: --shm-size=1g)");
  }
  StatusBoard board = map(fd, size, name);
  board.segment_->slot_count.store(static_cast<std::uint64_t>(slots), std::memory_order_release);
  board.segment_->magic.store(board_detail::kMagic, std::memory_order_release);
  return board;
}

StatusBoard StatusBoard::attach(const std::string& name) {
  const int fd = open_segment(name, O_RDWR);
  if (fd < 0) throw_system_error("status board: cannot open " + name);
  struct stat status {};
  if (fstat(fd, &status) != 0 || static_cast<std::size_t>(status.st_size) < sizeof(Segment)) {
    ::close(fd);
    throw std::runtime_error("status board: " + name + " is not a status board (" +
                             std::to_string(status.st_size) + " bytes)");
  }
  StatusBoard board = map(fd, static_cast<std::size_t>(status.st_size), name);
  const int slots = board.slots();
  if (board.segment_->magic.load(std::memory_order_acquire) != board_detail::kMagic || slots < 1 ||
      slots > kMaxSlots || Segment::bytes(slots) > board.size_)
    throw std::runtime_error("status board: " + name +
                             " was made by another version of catena; start the program with the "
                             "catena-run of the version it was linked with");
  return board;
}

StatusBoard StatusBoard::attach_from_environment() {
  const char* name = std::getenv("CATENA_STATUS_BOARD");
  if (!name || !*name) return create_private(1);
  StatusBoard board = attach(name);
  const char* text = std::getenv("CATENA_LOCAL_RANK");
  char* end = nullptr;
  const long rank = text ? std::strtol(text, &end, 10) : -1;
  if (!text || end == text || *end || rank < 0 || rank >= board.slots())
    throw std::runtime_error("status board: CATENA_LOCAL_RANK is '" +
                             std::string(text ? text : "(not set)") +
                             "', expected a number from 0 to " + std::to_string(board.slots() - 1) +
                             "; catena-run sets it");
  board.local_rank_ = static_cast<int>(rank);
  return board;
}

StatusBoard StatusBoard::create_private(int slots) {
  const std::size_t size = Segment::bytes(std::max(slots, 1));
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw_system_error("status board: no memory");
  auto* segment = static_cast<Segment*>(memory);
  segment->slot_count.store(static_cast<std::uint64_t>(std::max(slots, 1)),
                            std::memory_order_release);
  return StatusBoard(segment, size, -1, 0);
}

bool StatusBoard::unlink(const std::string& name) { return ::shm_unlink(name.c_str()) == 0; }

int StatusBoard::remove_stale(const std::string& prefix) {
  DIR* directory = opendir("/dev/shm");
  if (!directory) return 0;
  const std::string start = prefix.substr(prefix.starts_with('/') ? 1 : 0);
  int removed = 0;
  while (const dirent* entry = readdir(directory)) {
    std::string name = "/";
    name += entry->d_name;
    if (!name.substr(1).starts_with(start)) continue;
    const int fd = open_segment(name, O_RDWR);
    if (fd < 0) continue;  // another user's
    // Everyone who made or joined the segment holds a shared lock while alive.
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && unlink(name)) ++removed;
    ::close(fd);
  }
  closedir(directory);
  return removed;
}

int StatusBoard::slots() const {
  return static_cast<int>(segment_->slot_count.load(std::memory_order_acquire));
}

int StatusBoard::arrive() { return static_cast<int>(segment_->arrived.fetch_add(1)) + 1; }

Slot& StatusBoard::checked_slot(int local_rank) const {
  if (local_rank < 0 || local_rank >= slots())
    throw std::out_of_range("status board: slot " + std::to_string(local_rank) +
                            " asked for, the board has " + std::to_string(slots()));
  return segment_->slots[local_rank];
}

StatusSlot StatusBoard::slot(int local_rank) const { return StatusSlot(&checked_slot(local_rank)); }

SlotSnapshot StatusBoard::read(int local_rank) const {
  const Slot& slot = checked_slot(local_rank);
  SlotSnapshot snapshot;
  std::array<std::uint64_t, 2 + board_detail::kHostWords> identity;
  snapshot.torn |= !slot.identity.read(identity);
  snapshot.rank = static_cast<int>(identity[0]) - 1;
  snapshot.pid = static_cast<int>(identity[1]);
  snapshot.host = board_detail::get_text(identity, 2, board_detail::kHostWords * 8).c_str();
  snapshot.phase = static_cast<Phase>(slot.phase.load(std::memory_order_acquire));

  std::array<std::uint64_t, 2 + board_detail::kTextWords> text;
  snapshot.torn |= !slot.text.read(text);
  snapshot.operation = board_detail::get_text(text, 2, text[1]);
  snapshot.operation_started_ns = text[0];

  std::array<std::uint64_t, board_detail::kRecord + board_detail::kRecordWords> progress;
  snapshot.torn |= !slot.progress.read(progress);
  snapshot.started_sequence = progress[board_detail::kStarted];
  snapshot.finished_sequence = progress[board_detail::kFinished];
  snapshot.in_call = progress[board_detail::kInCall] != 0;
  if (snapshot.started_sequence > 0) {
    board_detail::RecordWords words;
    std::copy_n(progress.begin() + board_detail::kRecord, words.size(), words.begin());
    snapshot.last_call = format_call(std::bit_cast<CallRecord>(words));
    if (snapshot.in_call) {
      const std::string around = std::exchange(snapshot.operation, snapshot.last_call);
      if (!around.empty()) snapshot.operation.append(" in ").append(around);
      snapshot.operation_started_ns = progress[board_detail::kSince];
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

}  // namespace catena::comm
