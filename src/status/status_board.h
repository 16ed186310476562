// A shared-memory segment of one host in which every local rank leaves what it is doing.
//
// The launcher and the other ranks of the host read it, also after the writer was killed, so it
// needs nothing but libc: a rank reaches its slot without an allocation, a lock or a system call.
// A slot has one writing process (threads of it may write at the same time) and any number of
// readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "call_record.h"

namespace catena::comm {

// Where a rank is in its life. Launcher: launched; the rank itself: the others.
enum class Phase : std::uint32_t {
  empty,      // nobody has used the slot
  launched,   // the program was started
  joining,    // it is creating its communicators
  running,    // all ranks joined
  finishing,  // it is closing its communicators
  finished,   // the program ended with exit code 0
  failed      // the program failed, see Failure
};

// How far a rank is on its way out of the program.
enum class ExitStage : std::uint32_t {
  none,      // it has not begun to leave
  leaving,   // exit handlers run, catena's among them
  waiting,   // it has closed its communicators and waits for the other ranks to be as far
  ending,    // all ranks are as far; it is inside MPI_Finalize
  released,  // catena is done with it; what is left are the program's own destructors and handlers
};

// What went wrong in a rank. Only the first failure of each kind is kept.
struct Failure {
  bool present = false;
  std::string text;
  int blamed_rank = -1;  // the rank that made this one fail, -1 when unknown or itself
  std::uint64_t monotonic_ns = 0;
  std::uint64_t wall_ns = 0;
};

// A consistent copy of a slot. Texts are printable (catena/core/printable.h): another process wrote
// them.
struct SlotSnapshot {
  bool torn = false;  // the writer died in the middle of a write: a text may be half old, half new
  int rank = -1;
  int pid = 0;
  std::uint64_t process_start = 0;  // as ProcessLife::start; 0 when it could not be read
  std::string host;
  Phase phase = Phase::empty;
  std::string operation;  // what it is doing now, "" when nothing was said
  std::string last_call;  // the last collective started, formatted; "" when none
  std::string purpose;    // what it serves, such as "F::send"; "" when it serves itself
  bool in_call = false;   // that collective has not finished
  std::uint64_t started_sequence = 0;
  std::uint64_t finished_sequence = 0;
  std::uint64_t operation_started_ns = 0;  // CLOCK_MONOTONIC, as all times below
  std::uint64_t call_since_ns = 0;         // when the call that it is in began; 0: it is in none
  std::uint64_t idle_since_ns = 0;  // when its last call ended; 0: it is in one, or made none
  // Signs of life; 0 where nothing was said.
  std::uint64_t phase_since_ns = 0;
  ExitStage exit_stage = ExitStage::none;
  std::uint64_t exit_since_ns = 0;     // when it came to exit_stage
  std::uint64_t library_since_ns = 0;  // when it entered the MPI call that it is inside; 0: none
  std::uint64_t limit_ns = 0;          // its CATENA_TIMEOUT or CommunicatorOptions::timeout
  std::uint64_t beat_ns = 0;           // when its watchdog thread last ran, about once a second
  // Updates of optimizers, when the last one was, how long a step takes as of late, and how much of
  // that is not spent in calls; 0: there were none, or only one.
  std::uint64_t updates = 0;
  std::uint64_t update_since_ns = 0;
  std::uint64_t step_ns = 0;
  std::uint64_t own_step_ns = 0;
  Failure own_failure;   // its own error
  Failure peer_failure;  // it noticed that another rank failed or does not answer
};

// The time that the board's times are given in.
std::uint64_t monotonic_ns();

// Why a rank cannot end what it is in by itself any more, as "rank 1 has been inside MPI for 14 s,
// ..."; "" when it can, or when it has said nothing. Its own waits for other ranks end at their
// limit, so this is about what has no deadline: one call into the MPI library, and one
// stage of leaving the program, when they take `margin_seconds` longer than the limit. Ranks judge
// themselves with a margin of kRankMargin; whoever watches them from outside waits kOutsideMargin,
// so that a rank that still can speaks first.
inline constexpr double kRankMargin = 2;
inline constexpr double kOutsideMargin = 5;
std::string describe_stuck(const SlotSnapshot& slot, std::uint64_t now, double margin_seconds);

// The letter of /proc/PID/stat: R, S, D (waits for a device), T (stopped), t (traced), Z, X; '\0'
// when there is no such process.
char process_state(int pid);
// The state, and when the process was started, in clock ticks since the host was; 0 when there is
// no such process. The start time distinguishes it from a later process or thread with the same
// number.
struct ProcessLife {
  char state = '\0';
  std::uint64_t start = 0;
};
ProcessLife process_life(int pid);
bool is_stopped(const SlotSnapshot& slot);
// Whether the slot's process has ended, even if another process has its number now.
bool has_died(const SlotSnapshot& slot);
// What a rank does, by its process and its slot: " (process 12 is stopped)", " (in barrier #3)"; ""
// when nothing is known.
std::string describe_doing(const SlotSnapshot& slot);

namespace board_detail {
struct Slot;
struct Segment;
}  // namespace board_detail

// The writing end of one slot. A cheap handle; the board must outlive it.
class StatusSlot {
 public:
  StatusSlot() = default;
  explicit StatusSlot(board_detail::Slot* slot) : slot_(slot) {}
  explicit operator bool() const { return slot_ != nullptr; }

  void set_identity(int rank, int pid, std::string_view host);
  void set_phase(Phase phase);
  void set_exit_stage(ExitStage stage);

  // Around every call into the library below (MPI), which nothing in this process can end. One
  // thread at a time.
  void enter_library();
  void leave_library();
  // After how many seconds the rank gives up a wait by itself.
  void set_limit(double seconds);
  void beat();
  // An optimizer has updated its parameters. One thread at a time.
  void note_update();

  // Free text beside the collective, such as "loading data" or "epoch 3"; longer texts are cut.
  void set_operation(std::string_view text);

  // Around every collective; tens of nanoseconds. The call also enters the ring. `purpose` is what
  // it serves, such as "backward of F::send"; longer texts are cut.
  void begin_call(const CallRecord& record, std::string_view purpose = {});
  void end_call(const CallRecord& record);

  // Both keep the first text only and note the time.
  void fail(std::string_view text);
  void fail_because_of_peer(int peer_rank, std::string_view text);

 private:
  board_detail::Slot* slot_ = nullptr;
};

class StatusBoard {
 public:
  static constexpr int kRingSize = 1024;
  static constexpr int kMaxSlots = 4096;

  // Opens the shared-memory object `name` ("/catena-..."), or makes it when it does not exist.
  // Whoever of a host's processes comes first makes it, so nobody has to wait for anybody.
  // Throws std::system_error, with the size of /dev/shm in mind, when there is no room, and
  // std::runtime_error when the object is not this user's alone: another user who guesses the name
  // may make it first, so a job should choose one that cannot be guessed.
  static StatusBoard create(const std::string& name, int slots);
  // `name` is a shared-memory object or a path ("/proc/PID/fd/N", /-separated). Throws when it
  // does not exist, is not this user's alone, or was written by another version.
  static StatusBoard attach(const std::string& name);
  // CATENA_STATUS_BOARD and CATENA_LOCAL_RANK; a private board of one slot when the variable is
  // not set, so that programs need not care whether a launcher started them.
  static StatusBoard attach_from_environment();
  static StatusBoard create_private(int slots);

  // Removes the name; those who are attached keep the segment. False when there was none.
  static bool unlink(const std::string& name);
  // Removes the segments with this prefix that no live process has open; returns how many.
  static int remove_stale(const std::string& prefix);

  StatusBoard(StatusBoard&& other) noexcept;
  StatusBoard& operator=(StatusBoard&& other) noexcept;
  StatusBoard(const StatusBoard&) = delete;
  StatusBoard& operator=(const StatusBoard&) = delete;
  ~StatusBoard();

  int slots() const;
  bool shared() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  int local_rank() const { return local_rank_; }
  // Counts a process in; returns how many have been counted, this one included.
  int arrive();

  StatusSlot slot(int local_rank) const;
  StatusSlot own_slot() const { return slot(local_rank_); }
  SlotSnapshot read(int local_rank) const;
  // The last calls of a rank (at most `most`), oldest first.
  std::vector<CallRecord> calls(int local_rank, int most = kRingSize) const;
  // The number of the last call that a rank has begun on a communicator, or in one direction with a
  // peer (pair_id); 0 when there is none. Nothing when it is not known: the rank has used very
  // many.
  std::optional<std::uint64_t> last_sequence(int local_rank, std::uint64_t communicator) const;

 private:
  StatusBoard(board_detail::Segment* segment, std::size_t size, int fd, int local_rank);
  static StatusBoard map(int fd, std::size_t size, const std::string& name);
  board_detail::Slot& checked_slot(int local_rank) const;

  board_detail::Segment* segment_ = nullptr;
  std::size_t size_ = 0;
  int fd_ = -1;
  int local_rank_ = 0;
};

}  // namespace catena::comm
