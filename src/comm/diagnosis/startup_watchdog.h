// A deadline for the start of a communicator: the libraries below wait without one.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "status/status_board.h"

namespace catena::comm {

// While it lives, its thread watches the ranks of this host. When one of them ends without joining,
// or after `timeout` seconds, the thread ends this process with exit code 1 and an error that names
// the culprit. MPI_Init and the collectives that make communicators cannot be interrupted
// otherwise.
class StartupWatchdog {
 public:
  explicit StartupWatchdog(double timeout);
  ~StartupWatchdog();
  StartupWatchdog(const StartupWatchdog&) = delete;
  StartupWatchdog& operator=(const StartupWatchdog&) = delete;

 private:
  void run();
  // Checks the other ranks of this host; does not return when one has ended.
  void poll();
  [[noreturn]] void give_up_late();
  [[noreturn]] void give_up(int culprit, const std::string& text);

  double timeout_;
  std::optional<StatusBoard> board_;  // of catena-run; without one only time is watched
  Phase before_ = Phase::running;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace catena::comm
