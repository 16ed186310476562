#include "starter/mpirun_starter.h"

#include <cstdlib>

#include "base/text.h"
#include "starter/mpirun_output.h"
#include "starter/mpirun_settings.h"
#include "starter/srun_command.h"

namespace catena::launch {

namespace {

// mpirun itself would die, or explain nothing.
void require_usable_names(const std::vector<Host>& hosts) {
  const std::string own = host_name();
  std::vector<std::string> names = {own.substr(0, own.find('.'))};
  for (const Host& host : hosts) names.push_back(host.name);
  for (const std::string& name : names)
    if (const std::string problem = problem_of_host_name(name); !problem.empty())
      throw UserError("Open MPI 4 cannot use the host name '" + name + "': " + problem +
                      "; give the host another name (hostname NAME, docker run --hostname NAME)");
}

}  // namespace

StarterTerms MpirunStarter::terms() const {
  return {"mpirun",
          "daemon of Open MPI",
          "ssh",
          "answer to ssh without a password",
          "ssh ",
          " true",
          "there is no ssh here (apt-get install openssh-client)",
          "openmpi-bin"};
}

// The pipes of each rank, and its own. Measured with Open MPI 4.1: 4 n + 26 is what just works.
StarterNeeds MpirunStarter::needs() const { return {"mpirun", 32, 4}; }

std::string MpirunStarter::check() {
  mpirun_ = find_mpirun(name_);
  return "Open MPI " + mpirun_.version.text + ", " + mpirun_.path;
}

// Open MPI refuses this with less clear words.
void MpirunStarter::refuse_nesting() const {
  refuse_to_be_a_task(slurm_allocation());
  if (!std::getenv("OMPI_COMM_WORLD_RANK")) return;
  throw UserError(
      "this is already a rank of an mpirun or catena-run (OMPI_COMM_WORLD_RANK is set), which "
      "Open MPI cannot nest; start the program itself here, or catena-run from outside");
}

// A session folder is for jobs of this machine: on other hosts nobody would remove it.
void MpirunStarter::prepare(const JobSpec& spec) {
  if (mpirun_.version.major < 5) require_usable_names(spec.hosts);
  if (!spec.remote && !names_session_folder(spec.mpi_args, environment_of(spec)))
    session_ = std::make_unique<SessionFolder>();
}

StartCommand MpirunStarter::command(const JobSpec& spec) const {
  const McaParameters set(spec.mpi_args, environment_of(spec), mpirun_.path);
  MpirunDialect dialect;
  dialect.major = mpirun_.version.major;
  dialect.settings = network_settings(spec.network, set, dialect.major);
  for (const McaSetting& setting : host_name_settings(spec.hosts, set, dialect.major))
    dialect.settings.push_back(setting);
  if (session_) dialect.session_folder = session_->path();
  return {mpirun_.path, mpirun_command(spec, dialect)};
}

std::string MpirunStarter::describe_network(const JobSpec& spec) const {
  if (!spec.several_hosts()) return "";
  const std::string hint = "; --mpi-args '--mca btl_tcp_if_include 10.0.0.0/24' names another";
  if (spec.network.shared.empty()) return "what Open MPI chooses" + hint;
  return join(spec.network.shared, ", ") + ", where the names of the hosts lead" + hint;
}

std::unique_ptr<StarterOutput> MpirunStarter::read_output(const JobSpec& spec,
                                                          StarterOutput::OnLine on_line) const {
  return std::make_unique<MpirunOutput>(std::move(on_line),
                                        host_of_each_rank(spec.hosts, spec.ranks));
}

}  // namespace catena::launch
