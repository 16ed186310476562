// The status board of this process: how it is found, and what is left on it when the process ends.
#include "process_board.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <random>

#include "catena/core/log.h"
#include "communicator_state.h"

namespace catena::comm {
namespace {

struct OwnBoard {
  std::shared_ptr<StatusBoard> board;
  int slot = 0;
  pid_t process = 0;  // that took the slot
  StatusSlot own_slot() const { return board->slot(slot); }
};

OwnBoard& process_board() {
  static auto* own = new OwnBoard;  // never destroyed: the exit handler uses it
  return *own;
}
std::mutex board_mutex;  // of process_board()
std::atomic<bool> adopted{false};
std::terminate_handler previous_terminate = nullptr;

// That loaded this library. Children that it forks have another number.
const pid_t loading_process = getpid();

// An uncaught exception is written down before the process goes.
[[noreturn]] void note_and_terminate() {
  if (const std::exception_ptr current = std::current_exception(); current && is_rank_process()) {
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
  if (!is_rank_process()) return;
  StatusSlot slot = process_board().own_slot();
  slot.set_phase(Phase::finishing);
  slot.set_exit_stage(ExitStage::leaving);
  if (status != 0) slot.fail(message("exit code ", status));
}

std::string host_name() {
  char text[256] = {};
  gethostname(text, sizeof text - 1);
  return text;
}

void adopt(StatusBoard&& board, int slot, int rank) {
  process_board() = {std::make_shared<StatusBoard>(std::move(board)), slot, getpid()};
  process_board().own_slot().set_identity(rank, getpid(), host_name());
  on_exit(note_exit, nullptr);  // as atexit, with the exit code
  previous_terminate = std::set_terminate(note_and_terminate);
  adopted.store(true, std::memory_order_release);
}

// What a rank brings to the common search for boards.
struct Start {
  char host[64];
  char name[48];  // of the board that it would make, which others cannot guess
  int32_t has_board;
};

Start make_start(bool has_board) {
  Start start{};
  std::random_device random;
  std::snprintf(start.host, sizeof start.host, "%s", host_name().c_str());
  std::snprintf(start.name, sizeof start.name, "/catena-%d-%08x%08x", getpid(), random(), random());
  start.has_board = has_board;
  return start;
}

// The board that catena-run gave this process.
void take_launchers_board(int rank) {
  const char* name = std::getenv("CATENA_STATUS_BOARD");
  if (!name || !*name) return;
  StatusBoard board = StatusBoard::attach_from_environment();
  const int slot = board.local_rank();
  adopt(std::move(board), slot, rank);
}

// A board for the ranks of this host that have none, by the name that the first of them proposes:
// those of a job that plain mpirun started.
void make_common_board(const Communicator& comm, const std::vector<Start>& starts) {
  const Topology& t = comm.topology();
  size_t leader = starts.size();
  for (size_t r = 0; r < starts.size(); ++r) {
    if (t.hosts[r] != t.inter_rank) continue;
    CATENA_CHECK(CommError, !starts[r].has_board, "rank ", r,
                 " of the same host has a status board and this one has none");
    leader = std::min(leader, r);
  }
  adopt(StatusBoard::create(starts[leader].name, t.intra_size), t.intra_rank, comm.rank());
}

// The text of what `step` throws; "" when it does not.
template <class Step>
std::string problem_in(Step step) {
  try {
    step();
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

// One rank without a board, for want of shared memory on its host, ends the job on all hosts.
void require_boards(const std::vector<std::string>& problems, const std::vector<Start>& starts,
                    int rank) {
  for (size_t r = 0; r < problems.size(); ++r) {
    if (problems[r].empty()) continue;
    const std::string text =
        message("create_communicator: rank ", r, " on ", starts[r].host, ": ", problems[r]);
    if (problems[size_t(rank)].empty())
      process_board().own_slot().fail_because_of_peer(int(r), text);
    throw PeerError(text, int(r));
  }
}

void make_boards(Communicator& comm) {
  OwnBoard& own = process_board();
  std::string problem;
  if (!own.board) problem = problem_in([&] { take_launchers_board(comm.rank()); });
  // Whoever has a board already takes part as well: those of another host may not.
  const bool had_board = own.board != nullptr;
  const Start mine = make_start(had_board);
  const std::vector<Start> starts = comm.all_gather_object(mine);
  if (!had_board && problem.empty()) problem = problem_in([&] { make_common_board(comm, starts); });
  const auto problems = comm.all_gather_bytes(problem);  // all of the host have it open
  if (!had_board) StatusBoard::unlink(mine.name);        // one of them made it
  require_boards(problems, starts, comm.rank());
}

}  // namespace

StatusSlot process_slot() {
  if (!adopted.load(std::memory_order_acquire)) return {};
  return process_board().own_slot();
}

std::shared_ptr<StatusBoard> own_board() {
  return adopted.load(std::memory_order_acquire) ? process_board().board : nullptr;
}

int own_board_slot() { return process_board().slot; }

bool is_rank_process() {
  const OwnBoard& own = process_board();
  return own.board && own.process == getpid();
}

void note_failure(std::string_view text) {
  // Another thread may hold it for as long as it waits for the other ranks.
  const std::unique_lock lock(board_mutex, std::try_to_lock);
  if (lock.owns_lock() && process_board().board) {
    if (is_rank_process()) process_board().own_slot().fail(text);
    return;
  }
  // Before the first communicator; without catena-run there is nobody to tell.
  if (const char* name = std::getenv("CATENA_STATUS_BOARD");
      name && *name && getpid() == loading_process)
    StatusBoard::attach_from_environment().own_slot().fail(text);
}

BoardPlace find_board(Communicator& comm) {
  std::lock_guard lock(board_mutex);
  make_boards(comm);
  struct Place {
    int slot, rank;
    char host[64];
  };
  OwnBoard& own = process_board();
  Place mine{own.slot, own.board->read(own.slot).rank, {}};
  std::snprintf(mine.host, sizeof mine.host, "%s", host_name().c_str());
  BoardPlace place{own.board, {}, {}, {}};
  const auto places = comm.all_gather_object(mine);
  for (int r = 0; r < comm.size(); ++r) {
    const Place& of = places[size_t(r)];
    const bool here = comm.topology().hosts[size_t(r)] == comm.inter_rank();
    place.slots.push_back(here ? of.slot : -1);
    place.ranks.push_back(of.rank);
    place.hosts.push_back(of.host);
  }
  own.own_slot().set_phase(Phase::running);
  return place;
}

std::string describe_missing_at_exit(double waited, int* blamed) {
  *blamed = -1;
  const OwnBoard& own = process_board();
  std::string missing;
  for (int slot = 0; own.board && slot < own.board->slots(); ++slot) {
    const SlotSnapshot peer = own.board->read(slot);
    if (peer.rank < 0 || peer.exit_stage >= ExitStage::waiting) continue;
    if (*blamed < 0) *blamed = peer.rank;
    missing += message(missing.empty() ? "" : ", ", "rank ", peer.rank, describe_doing(peer));
  }
  if (missing.empty()) missing = "ranks of other hosts";
  return message(missing, " did not reach the end of the program within ", waited,
                 " s (CATENA_TIMEOUT) of this rank");
}

}  // namespace catena::comm
