#include "rank/program_process.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/program.h"
#include "base/text.h"

namespace catena::launch {
namespace {

// Of this size, "120x40". Bytes pass unchanged. A pipe where there are no terminals.
Pipe open_terminal(const std::string& size) {
  Pipe pair{Descriptor(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)), Descriptor()};
  if (!pair.read.open() || grantpt(pair.read.get()) != 0 || unlockpt(pair.read.get()) != 0)
    return make_pipe();
  pair.write = Descriptor(open(ptsname(pair.read.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!pair.write.open()) return make_pipe();
  termios attributes{};
  tcgetattr(pair.write.get(), &attributes);
  attributes.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  attributes.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  tcsetattr(pair.write.get(), TCSANOW, &attributes);
  winsize window{};
  if (std::sscanf(size.c_str(), "%hux%hu", &window.ws_col, &window.ws_row) == 2)
    ioctl(pair.write.get(), TIOCSWINSZ, &window);
  return pair;
}

[[noreturn]] void become_program(const std::vector<std::string>& words, const SignalQueue& signals,
                                 int output, int error, int failed) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signals.restore_in_child();
  dup2(output, STDOUT_FILENO);
  dup2(error, STDERR_FILENO);
  execvp(words[0].c_str(), argv_of(words).data());
  const int reason = errno;
  if (write(failed, &reason, sizeof(reason)) < 0) _exit(125);
  _exit(127);
}

}  // namespace

ProgramProcess start_program(const JobSpec& spec, const RankIdentity& identity,
                             const SignalQueue& signals) {
  const bool terminal = identity.rank == 0 && !spec.terminal.empty();
  Pipe output = terminal ? open_terminal(spec.terminal) : make_pipe();
  Pipe error = make_pipe();
  Pipe failed = make_pipe();  // closed by a successful exec
  const pid_t pid = fork_group();
  if (pid == 0)
    become_program(spec.program, signals, output.write.get(), error.write.get(),
                   failed.write.get());
  failed.write.reset();
  int reason = 0;
  if (read(failed.read.get(), &reason, sizeof(reason)) == sizeof(reason)) {
    waitpid(pid, nullptr, 0);
    throw UserError("cannot start '" + spec.program.front() + "' on host " + identity.host + ": " +
                        why_not_started(spec.program.front(), reason),
                    reason == ENOENT ? 127 : 126);
  }
  set_nonblocking(output.read.get());
  set_nonblocking(error.read.get());
  return {pid, std::move(output.read), std::move(error.read)};
}

void remove_shared_memory(int local_rank) {
  const char* space = std::getenv("PMIX_NAMESPACE");
  const unsigned long job = space ? std::strtoul(space, nullptr, 10) : 0;
  if (job == 0) return;
  char end[64];
  std::snprintf(end, sizeof(end), ".%u.%x.%d", geteuid(), static_cast<unsigned>(job), local_rank);
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/dev/shm", error), none; !error && entry != none;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool segment = name.starts_with("vader_segment.") || name.starts_with("sm_segment.");
    if (segment && name.ends_with(end)) ::unlink(entry->path().c_str());
  }
}

}  // namespace catena::launch
