#include "join_watch.h"

#include <signal.h>

#include <chrono>
#include <cstdlib>

#include "catena/comm/transport.h"
#include "catena/core/log.h"

namespace catena::comm {

JoinWatch::JoinWatch(double timeout) : timeout_(timeout) {
  if (const char* name = std::getenv("CATENA_STATUS_BOARD"); name && *name) {
    board_.emplace(StatusBoard::attach_from_environment());
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

JoinWatch::~JoinWatch() {
  {
    std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (!board_ || board_->read(board_->local_rank()).phase != Phase::joining) return;
  board_->own_slot().set_phase(before_ == Phase::launched ? Phase::running : before_);
}

void JoinWatch::run() {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::milliseconds(200), [this] { return done_; })) {
    look();
    if (Clock::now() < deadline) continue;
    std::vector<int> late;
    for (int slot = 0; board_ && slot < board_->slots(); ++slot) {
      const SlotSnapshot peer = board_->read(slot);
      if (peer.phase == Phase::joining || peer.rank < 0) continue;
      late.push_back(peer.rank);
    }
    const std::string who = late.empty() ? "ranks of other hosts" : list_ranks(late);
    give_up(late.empty() ? -1 : late[0],
            message("create_communicator: ", who, late.size() == 1 ? " has" : " have",
                    " not called it within ", timeout_,
                    " s (CATENA_START_TIMEOUT, catena-run --start-timeout)"));
  }
}

void JoinWatch::look() {
  for (int slot = 0; board_ && slot < board_->slots(); ++slot) {
    const SlotSnapshot peer = board_->read(slot);
    if (slot == board_->local_rank()) continue;
    if (peer.phase == Phase::finished || peer.phase == Phase::failed)
      give_up(peer.rank, message("create_communicator: rank ", peer.rank,
                                 " ended before it joined the other ranks",
                                 peer.own_failure.present ? ": " + peer.own_failure.text : ""));
  }
}

void JoinWatch::give_up(int blamed, const std::string& text) {
  if (board_) board_->own_slot().fail_because_of_peer(blamed, text);
  logging::error(text);
  // Handlers of exit() would wait for the library that cannot be left.
  std::_Exit(1);
}

}  // namespace catena::comm
