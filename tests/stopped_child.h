// A child process that is stopped by a signal, for tests of what others see of it.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace catena::testing {

class StoppedChild {
 public:
  StoppedChild() : pid_(fork()) {
    if (pid_ == 0)
      for (;;) pause();
    kill(pid_, SIGSTOP);
    int status = 0;
    stopped_ = waitpid(pid_, &status, WUNTRACED) == pid_;
  }
  ~StoppedChild() { end(); }
  StoppedChild(const StoppedChild&) = delete;
  StoppedChild& operator=(const StoppedChild&) = delete;

  pid_t pid() const { return pid_; }
  bool stopped() const { return stopped_; }
  // Kills it and waits for its end.
  void end() {
    if (ended_) return;
    ended_ = true;
    kill(pid_, SIGKILL);
    int status = 0;
    waitpid(pid_, &status, 0);
  }

 private:
  pid_t pid_;
  bool stopped_ = false, ended_ = false;
};

}  // namespace catena::testing
