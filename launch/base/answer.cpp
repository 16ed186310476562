#include "base/answer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/process.h"
#include "base/text.h"

namespace catena::launch {
namespace {

[[noreturn]] void become(const std::vector<std::string>& words, int output) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execv(words[0].c_str(), argv_of(words).data());
  _exit(127);
}

// One that waits to be read; 0: none does.
int pending_signal() {
  sigset_t pending;
  sigpending(&pending);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    if (sigismember(&pending, signal) == 1) return signal;
  return 0;
}

// Whether the process will write more.
bool read_some(const Descriptor& source, std::string& text) {
  pollfd ready{source.get(), POLLIN, 0};
  if (poll(&ready, 1, 50) <= 0) return true;
  std::array<char, 4096> bytes;
  const ssize_t got = read(source.get(), bytes.data(), bytes.size());
  if (got > 0) text.append(bytes.data(), static_cast<std::size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

// A process that is ended with this object.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;

 private:
  pid_t pid_;
};

}  // namespace

std::string answer_of(const std::vector<std::string>& words, double seconds) {
  Pipe output = make_pipe();
  const pid_t pid = fork_group();
  if (pid == 0) become(words, output.write.get());
  const Child child(pid);
  output.write.reset();
  std::string text;
  const double deadline = monotonic_seconds() + seconds;
  while (read_some(output.read, text)) {
    if (const int signal = pending_signal(); signal != 0)
      throw UserError(
          "stopped by " + signal_name(signal) + " while '" + join(words, " ") + "' did not answer",
          128 + signal);
    if (monotonic_seconds() > deadline)
      throw UserError("'" + join(words, " ") + "' has not answered for " + format_seconds(seconds) +
                          " s; is it the right program, and does its file system answer?",
                      127);
  }
  return text;
}

}  // namespace catena::launch
