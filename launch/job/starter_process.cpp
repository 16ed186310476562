#include "job/starter_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/text.h"

namespace catena::launch {
namespace {

[[noreturn]] void become_starter(const JobSpec& spec, const StartCommand& command,
                                 const SignalQueue& signals, int output, int error) {
  // A separate process group: we handle Ctrl-C. As a background process it cannot read
  // the terminal, so it gets a standard input only when that is something else.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (isatty(STDIN_FILENO)) dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
  signals.restore_in_child();
  dup2(output, STDOUT_FILENO);
  dup2(error, STDERR_FILENO);
  for (const EnvSetting& setting : spec.env)
    if (setting.value) setenv(setting.name.c_str(), setting.value->c_str(), 1);
  for (const EnvSetting& setting : command.environment) {
    if (setting.value)
      setenv(setting.name.c_str(), setting.value->c_str(), 1);
    else
      unsetenv(setting.name.c_str());
  }
  std::vector<char*> words;
  for (const std::string& word : command.words) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  execv(command.path.c_str(), words.data());
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
  starter.pid = fork();
  if (starter.pid < 0) throw UserError(std::string("cannot fork: ") + std::strerror(errno), 126);
  if (starter.pid == 0)
    become_starter(spec, command, signals, output.write.get(), error.write.get());
  setpgid(starter.pid, starter.pid);  // as the child does; whoever comes first
  starter.output = std::move(output.read);
  starter.error = std::move(error.read);
  return starter;
}

}  // namespace catena::launch
