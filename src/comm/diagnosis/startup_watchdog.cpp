#include "startup_watchdog.h"

#include <signal.h>

#include <chrono>
#include <cstdlib>

#include "catena/comm/transport.h"
#include "catena/core/log.h"
#include "catena/core/trace.h"

namespace catena::comm {

StartupWatchdog::StartupWatchdog(double timeout) : timeout_(timeout) {
  if (const char* name = std::getenv("CATENA_STATUS_BOARD"); name && *name) {
    try {
      board_.emplace(StatusBoard::attach_from_environment());
    } catch (const std::exception&) {  // find_board() says so to all ranks, once they have met
    }
  }
  if (board_) {
    before_ = board_->read(board_->local_rank()).phase;
    board_->own_slot().set_phase(Phase::joining);
  }
  // The program's signals are for the program's threads.
  sigset_t all, own;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &own);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &own, nullptr);
}

StartupWatchdog::~StartupWatchdog() {
  {
    std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (!board_ || board_->read(board_->local_rank()).phase != Phase::joining) return;
  board_->own_slot().set_phase(before_ == Phase::launched ? Phase::running : before_);
}

void StartupWatchdog::run() {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::milliseconds(200), [this] { return done_; })) {
    poll();
    if (Clock::now() < deadline) continue;
    give_up_late();
  }
}

// Nobody has come to the end in time: those of this host that did not call, or are stopped, or else
// it is nobody's fault that is known here.
void StartupWatchdog::give_up_late() {
  std::vector<int> late;
  std::string doing;
  int stopped = -1;
  for (int slot = 0; board_ && slot < board_->slots(); ++slot) {
    const SlotSnapshot peer = board_->read(slot);
    if (peer.rank >= 0 && peer.phase != Phase::joining) late.push_back(peer.rank);
    if (peer.rank < 0 || !is_stopped(peer)) continue;
    if (stopped < 0) stopped = peer.rank;
    doing += message("; rank ", peer.rank, describe_doing(peer));
  }
  const std::string limit =
      message(" within ", timeout_, " s (CATENA_START_TIMEOUT, catena-run --start-timeout)", doing);
  if (!late.empty())
    give_up(late[0], message("create_communicator: ", list_ranks(late),
                             late.size() == 1 ? " has" : " have", " not called it", limit));
  const LaunchEnvironment launch = launch_environment();
  const bool one_host = launch.launched && launch.local_size == launch.size;
  give_up(stopped,
          message("create_communicator: ",
                  !board_    ? "other ranks have not called it"
                  : one_host ? "all ranks have called it, but MPI has not connected them"
                             : "all ranks of this host have called it, but those of other hosts "
                               "have not, or MPI cannot reach them over the network",
                  limit));
}

namespace {

// A rank that failed and whose process lives may have caught its error, and may join again.
bool has_ended(const SlotSnapshot& peer) {
  if (peer.phase == Phase::finished) return true;
  return peer.phase == Phase::failed && (peer.pid <= 0 || has_died(peer));
}

}  // namespace

void StartupWatchdog::poll() {
  for (int slot = 0; board_ && slot < board_->slots(); ++slot) {
    const SlotSnapshot peer = board_->read(slot);
    if (slot == board_->local_rank()) continue;
    if (has_ended(peer))
      give_up(peer.rank, message("create_communicator: rank ", peer.rank,
                                 " ended before it joined the other ranks",
                                 peer.own_failure.present ? ": " + peer.own_failure.text : ""));
  }
}

void StartupWatchdog::give_up(int culprit, const std::string& text) {
  if (board_) board_->own_slot().fail_because_of_peer(culprit, text);
  logging::error(text);
  // Handlers of exit() would wait for the library that cannot be left.
  tracing::stop_quietly();
  std::_Exit(1);
}

}  // namespace catena::comm
