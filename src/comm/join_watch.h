// A deadline for the start of a communicator, which libraries below it wait for without one.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "status_board.h"

namespace catena::comm {

// While it lives, a thread of its own ends this process with exit code 1 and an error that names
// the rank at fault, once a rank of this host has ended without joining or `timeout` seconds have
// passed. MPI_Init and the collectives that make communicators cannot be interrupted otherwise.
class JoinWatch {
 public:
  explicit JoinWatch(double timeout);
  ~JoinWatch();
  JoinWatch(const JoinWatch&) = delete;
  JoinWatch& operator=(const JoinWatch&) = delete;

 private:
  void run();
  // Looks at the other ranks of this host; does not return when one has ended.
  void look();
  [[noreturn]] void give_up_late();
  [[noreturn]] void give_up(int blamed, const std::string& text);

  double timeout_;
  std::optional<StatusBoard> board_;  // of catena-run; without one only time is watched
  Phase before_ = Phase::running;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace catena::comm
