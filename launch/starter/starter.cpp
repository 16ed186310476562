#include "starter/starter.h"

#include <sys/wait.h>

#include <csignal>

#include "base/text.h"
#include "starter/mpirun_settings.h"
#include "starter/mpirun_starter.h"
#include "starter/srun_starter.h"

namespace catena::launch {

int Starter::exit_code(int wait_status) const {
  return WIFSIGNALED(wait_status) ? -WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

void Starter::signal_ranks(pid_t starter, const std::string&, int signal) const {
  kill(starter, signal);
}

double Starter::end(pid_t starter) const {
  kill(-starter, SIGKILL);
  return 0;
}

std::string Starter::describe_transports(const JobSpec& spec) const {
  return join(chosen_transports(spec.mpi_args, environment_of(spec)), ", ");
}

namespace {

void check_srun_options(const JobSpec& spec) {
  if (!spec.hosts.empty())
    throw UserError(
        "--starter srun takes its hosts from the allocation; leave -H and --hostfile out, choose "
        "among the allocated ones by --srun-args '--nodelist=n1,n2', or start with --starter "
        "mpirun");
  if (!spec.mpi_args.empty())
    throw UserError(
        "--mpi-args is for mpirun, and this job is started by srun; use --srun-args, or --starter "
        "mpirun");
}

}  // namespace

std::unique_ptr<Starter> choose_starter(const JobSpec& spec) {
  if (spec.starter == "srun") check_srun_options(spec);
  if (spec.starter == "srun" || (spec.starter.empty() && prefers_srun(spec)))
    return std::make_unique<SrunStarter>();
  if (!spec.srun_args.empty())
    throw UserError(
        "--srun-args is for srun, and this job is started by mpirun; use --mpi-args, or --starter "
        "srun in an allocation of Slurm");
  return std::make_unique<MpirunStarter>(spec.mpirun);
}

}  // namespace catena::launch
