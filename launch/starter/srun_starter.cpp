#include "starter/srun_starter.h"

#include <algorithm>
#include <csignal>
#include <string_view>

#include "base/process.h"
#include "base/program.h"
#include "base/text.h"
#include "starter/mpirun_settings.h"
#include "starter/slurm_nodes.h"
#include "starter/srun_output.h"
#include "wire/job_words.h"

namespace catena::launch {
namespace {

// Seconds that srun gets to have the tasks killed and to end.
constexpr double kEnd = 1.5;

// For Open MPI in the ranks, which mpirun would give its settings; there are no daemons of it.
std::vector<EnvSetting> network_variables(const JobSpec& spec, const std::string& srun) {
  const McaParameters set({}, environment_of(spec), srun);
  std::vector<EnvSetting> variables;
  for (const McaSetting& setting : network_settings(spec.network, set, 4))
    if (!setting.runtime) variables.push_back({"OMPI_MCA_" + setting.name, setting.value});
  return variables;
}

// Slurm's pmix plug-in connects the nodes by a tree for barriers and by a ring for those that carry
// data, and lets a rank pass the second barrier of MPI_Init while another is still in the first:
// with Open MPI 4.1 that one dies of SIGSEGV when the first message comes, in 6 of 240 starts on a
// loaded machine. With one of the two this is rarer, 2 in about 1,000 starts (Slurm 22.05;
// open-mpi/ompi issue 12495).
void choose_fence(const JobSpec& spec, std::vector<EnvSetting>& variables) {
  const std::string_view fence = "SLURM_PMIX_FENCE";
  const auto is_set = [fence](const std::string& entry) {
    return entry.starts_with(fence) && entry.substr(fence.size(), 1) == "=";
  };
  const std::vector<std::string> environment = environment_of(spec);
  if (std::none_of(environment.begin(), environment.end(), is_set))
    variables.push_back({std::string(fence), "tree"});
}

// False as well for one that does not work: a job that mpirun can start must not fail by it.
bool srun_connects_by_pmix() {
  try {
    return choose_mpi_kind(find_srun().mpi_kinds).starts_with("pmix");
  } catch (const UserError& error) {
    if (error.exit_code() > 128) throw;  // a signal
    return false;
  }
}

}  // namespace

StarterTerms SrunStarter::terms() const {
  return {"srun",  "slurmd", "Slurm",       "are up in Slurm (see sinfo)", "srun --nodelist=",
          " true", "",       "slurm-client"};
}

// Its connections are those to nodes, not to ranks.
StarterNeeds SrunStarter::needs() const {
  StarterNeeds needs{"srun", 64, 0};
  needs.in_allocation = true;
  return needs;
}

std::string SrunStarter::check() {
  if (allocation_.job.empty())
    throw UserError(
        "--starter srun: there is no allocation of Slurm here (SLURM_JOB_ID is not set); get one "
        "by salloc or sbatch, or start with --starter mpirun");
  srun_ = find_srun();
  const std::string kinds = srun_.mpi_kinds.empty() ? "none" : join(srun_.mpi_kinds, ", ");
  return "Slurm " + srun_.version + ", " + srun_.path + ", MPI through: " + kinds;
}

void SrunStarter::refuse_nesting() const { refuse_to_be_a_task(allocation_); }

std::vector<std::string> SrunStarter::usable_nodes() const {
  return usable_nodes_of(allocation_.job);
}

StartCommand SrunStarter::command(const JobSpec& spec) const {
  StartCommand command{srun_.path,
                       srun_command(spec, allocation_, choose_mpi_kind(srun_.mpi_kinds)),
                       network_variables(spec, srun_.path)};
  choose_fence(spec, command.environment);
  for (const std::string& name : variables_to_hide(spec, allocation_))
    command.environment.push_back({name, std::nullopt});
  return command;
}

std::string SrunStarter::describe_network(const JobSpec& spec) const {
  if (!spec.several_hosts()) return "";
  return "what MPI chooses; --env OMPI_MCA_btl_tcp_if_include=10.0.0.0/24 names another for Open "
         "MPI";
}

std::unique_ptr<StarterOutput> SrunStarter::read_output(const JobSpec&,
                                                        StarterOutput::OnLine on_line) const {
  return std::make_unique<SrunOutput>(std::move(on_line));
}

void SrunStarter::signal_ranks(pid_t starter, const std::string& step, int signal) const {
  if (signal == SIGUSR1 || signal == SIGUSR2) {
    kill(starter, signal);
    return;
  }
  const auto scancel = find_executable("scancel");
  if (scancel && !step.empty())
    start_detached({*scancel, "--quiet", "--signal=" + std::to_string(kStopOfSlurm), step});
}

// Killed at once, it would leave its tasks running.
double SrunStarter::end(pid_t starter) const {
  kill(starter, SIGTERM);
  return kEnd;
}

bool prefers_srun(const JobSpec& spec) {
  const bool mpirun_asked = !spec.mpi_args.empty() || spec.mpirun != JobSpec{}.mpirun;
  if (!spec.hosts.empty() || mpirun_asked || slurm_allocation().job.empty()) return false;
  if (!spec.srun_args.empty()) return true;
  if (!find_executable("srun")) return false;
  return srun_connects_by_pmix() || !find_executable(spec.mpirun);
}

}  // namespace catena::launch
