#include "job/starter_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace catena::launch {
namespace {

[[noreturn]] void become_starter(const JobSpec& spec, const StartCommand& command,
                                 const SignalQueue& signals, int output, int error) {
  // Its process group is a separate one: we handle Ctrl-C. As a background process it cannot read
  // the terminal, so it gets a standard input only when that is something else.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (isatty(STDIN_FILENO)) dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  signals.restore_in_child();
  dup2(output, STDOUT_FILENO);
  dup2(error, STDERR_FILENO);
  for (const EnvSetting& setting : spec.env)
    if (setting.value) put(setting);
  for (const EnvSetting& setting : command.environment) put(setting);
  execv(command.path.c_str(), argv_of(command.words).data());
  std::fprintf(stderr, "catena-run: cannot start %s: %s\n", command.path.c_str(),
               std::strerror(errno));
  _exit(127);
}

}  // namespace

StarterProcess start_starter(const JobSpec& spec, const StartCommand& command,
                             const SignalQueue& signals) {
  Pipe output = make_pipe();
  Pipe error = make_pipe();
  StarterProcess starter;
  starter.pid = fork_group();
  if (starter.pid == 0)
    become_starter(spec, command, signals, output.write.get(), error.write.get());
  starter.output = std::move(output.read);
  starter.error = std::move(error.read);
  return starter;
}

}  // namespace catena::launch
