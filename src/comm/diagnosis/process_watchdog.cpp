// The thread of a rank that ends it when nothing else can.
#include "process_watchdog.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>

#include "catena/core/log.h"
#include "catena/core/trace.h"
#include "status/process_board.h"

namespace catena::comm {
namespace {

constexpr std::chrono::seconds kPeriod{1};
constexpr std::uint64_t kPaused = 3'000'000'000;  // ns; longer means that the process was stopped

// The rank's own exit handlers and destructors are its own fault, what MPI does is nobody's.
bool is_own_fault(const SlotSnapshot& slot) {
  return slot.library_since_ns == 0 &&
         (slot.exit_stage == ExitStage::leaving || slot.exit_stage == ExitStage::released);
}

[[noreturn]] void end_process(const SlotSnapshot& own, const std::string& text) {
  if (is_own_fault(own))
    process_slot().fail(text);
  else
    process_slot().fail_because_of_peer(-1, text);
  logging::error(text);
  // Handlers of exit() would wait for what does not return.
  tracing::stop_quietly();
  std::_Exit(1);
}

void watch() {
  const std::shared_ptr<StatusBoard> board = own_board();
  const int slot = own_board_slot();
  std::uint64_t last = monotonic_ns(), resumed = last;
  for (;; std::this_thread::sleep_for(kPeriod)) {
    process_slot().beat();
    const std::uint64_t now = monotonic_ns();
    // Time in which the process was stopped does not count: it could not do anything.
    if (now - last > kPaused) resumed = now;
    last = now;
    SlotSnapshot own = board->read(slot);
    for (std::uint64_t* since : {&own.library_since_ns, &own.exit_since_ns})
      if (*since != 0) *since = std::max(*since, resumed);
    const std::string text = describe_stuck(own, now, kRankMargin);
    if (!text.empty()) end_process(own, text);
  }
}

}  // namespace

void watch_process(double limit) {
  // The longest limit of all communicators: which of them a call of MPI is for is not known.
  static std::atomic<double> longest{0};
  double before = longest.load();
  while (before < limit && !longest.compare_exchange_weak(before, limit)) {
  }
  process_slot().set_limit(longest);
  static const bool started = [] {
    // The program's signals are for the program's threads.
    sigset_t all, own;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &own);
    std::thread(watch).detach();
    pthread_sigmask(SIG_SETMASK, &own, nullptr);
    return true;
  }();
  static_cast<void>(started);
}

std::string describe_missing_at_exit(double waited, int* culprit) {
  *culprit = -1;
  const std::shared_ptr<StatusBoard> board = own_board();
  std::string missing;
  for (int slot = 0; board && slot < board->slots(); ++slot) {
    const SlotSnapshot peer = board->read(slot);
    if (peer.rank < 0 || peer.exit_stage >= ExitStage::waiting) continue;
    if (*culprit < 0) *culprit = peer.rank;
    missing += message(missing.empty() ? "" : ", ", "rank ", peer.rank, describe_doing(peer));
  }
  if (missing.empty()) missing = "ranks of other hosts";
  return message(missing, " did not reach the end of the program within ", waited,
                 " s (CATENA_TIMEOUT) of this rank");
}

}  // namespace catena::comm
