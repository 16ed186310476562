// The status board of this process, and what is left on it when the process ends.
#include "process_board.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>

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
  if (status == 0) return;
  // Other exit handlers take it for a failure too, and do not wait for the other ranks.
  const bool cut = (status & 0xff) == 0;
  slot.fail("exit code " + std::to_string(status) + (cut ? ", of which the system keeps 0" : ""));
}

}  // namespace

std::string host_name() {
  char text[256] = {};
  gethostname(text, sizeof text - 1);
  return text;
}

std::unique_lock<std::mutex> lock_process_board() { return std::unique_lock(board_mutex); }

void adopt_board(StatusBoard&& board, int slot, int rank) {
  process_board() = {std::make_shared<StatusBoard>(std::move(board)), slot, getpid()};
  process_board().own_slot().set_identity(rank, getpid(), host_name());
  on_exit(note_exit, nullptr);  // as atexit, with the exit code
  previous_terminate = std::set_terminate(note_and_terminate);
  adopted.store(true, std::memory_order_release);
}

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

void note_process_failure(std::string_view text) {
  // Another thread may hold it for as long as it waits for the other ranks.
  const std::unique_lock lock(board_mutex, std::try_to_lock);
  if (lock.owns_lock() && process_board().board) {
    if (is_rank_process()) process_board().own_slot().fail(text);
    return;
  }
  // Before the first communicator; without catena-run nobody reads it.
  if (const char* name = std::getenv("CATENA_STATUS_BOARD");
      name && *name && getpid() == loading_process)
    StatusBoard::attach_from_environment().own_slot().fail(text);
}

}  // namespace catena::comm
