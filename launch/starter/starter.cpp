#include "starter/starter.h"

#include <sys/wait.h>

#include <csignal>

#include "starter/mpirun_starter.h"

namespace catena::launch {

int Starter::exit_code(int wait_status) const {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

void Starter::signal_ranks(pid_t starter, int signal) const { kill(starter, signal); }

std::unique_ptr<Starter> choose_starter(const JobSpec& spec) {
  return std::make_unique<MpirunStarter>(spec.mpirun);
}

}  // namespace catena::launch
