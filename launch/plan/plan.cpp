#include "plan/plan.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/text.h"
#include "plan/gpus.h"
#include "plan/slurm.h"
#include "status/status_board.h"

namespace catena::launch {
namespace {

using Kind = Devices::Kind;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string count_of(int count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

[[noreturn]] void too_many_ranks(int ranks, int gpus, const std::string& where) {
  throw UserError(count_of(ranks, "rank") + " asked for but " + where + " has " +
                  count_of(gpus, "GPU") + ", and every rank needs its own; use -n " +
                  std::to_string(gpus) +
                  " or fewer, choose devices with --gpus, or run on CPU "
                  "devices with --cpu (or CATENA_DEVICE=cpu)");
}

void check_gpu_list(const std::vector<int>& gpus, const Machine& machine) {
  const int highest = *std::max_element(gpus.begin(), gpus.end());
  if (machine.gpus == 0)
    throw UserError("--gpus was given but this machine has 0 GPUs: " + machine.gpu_problem +
                    "; leave --gpus out to run on CPU devices");
  if (highest >= machine.gpus)
    throw UserError("--gpus names GPU " + std::to_string(highest) + " but this machine has " +
                    count_of(machine.gpus, "GPU") + ", numbered from 0 to " +
                    std::to_string(machine.gpus - 1));
}

void check_list_length(const std::vector<int>& gpus, int ranks_on_host, const std::string& host) {
  const int count = static_cast<int>(gpus.size());
  if (count == ranks_on_host) return;
  throw UserError("--gpus names " + count_of(count, "GPU") + " but " + host + " runs " +
                  count_of(ranks_on_host, "rank") +
                  "; name one GPU a rank, or change -n (or the slots) to match");
}

// "auto" or nothing leaves the choice to the machine.
void check_device(const std::string& device, const Machine& machine) {
  if (device.empty() || device == "auto") return;
  const std::size_t colon = device.find(':');
  const std::string kind = device.substr(0, colon);
  const bool numbered = colon == std::string::npos || parse_number(device.substr(colon + 1));
  if (!numbered || (kind != "cpu" && kind != "cuda" && kind != "gpu"))
    throw UserError("CATENA_DEVICE=" + device +
                    " is not the name of a device; expected cpu, cuda or one with its number, such "
                    "as cuda:1");
  if (kind != "cpu" && machine.gpus == 0)
    throw UserError("CATENA_DEVICE=" + device + " but this machine has 0 GPUs: " +
                    machine.gpu_problem + "; unset it, or use --cpu");
}

bool wants_cpu(const JobSpec& spec, const Machine& machine) {
  if (spec.devices.kind != Kind::automatic) return spec.devices.kind == Kind::cpu;
  return machine.device == "cpu" || machine.device.starts_with("cpu:");
}

// The starter would find out halfway, with a message that explains nothing.
void check_count(int ranks, const std::string& where) {
  if (ranks <= comm::StatusBoard::kMaxSlots) return;
  throw UserError(count_of(ranks, "rank") + " asked for on " + where + ", but one host takes " +
                  std::to_string(comm::StatusBoard::kMaxSlots) +
                  " at most; use a smaller -n, or more hosts with -H h1:4,h2:4");
}

void check_limits(int ranks, const Machine& machine, const StarterNeeds& needs) {
  check_count(ranks, "this machine");
  // A rank process and its program; the starter itself and the threads of all have to fit in as
  // well.
  constexpr long kProcessesOfRank = 2;
  if (kProcessesOfRank * ranks > machine.most_processes)
    throw UserError(count_of(ranks, "rank") + " asked for, which are " +
                    std::to_string(kProcessesOfRank * ranks) + " processes, but there may be " +
                    std::to_string(machine.most_processes) +
                    " here (ulimit -u, kernel.pid_max, pids.max of the control group); use a "
                    "smaller -n, or raise the limit");
  const long files = needs.files_of_rank * ranks + needs.files;
  if (files > machine.most_files)
    throw UserError(count_of(ranks, "rank") + " asked for, for which " + needs.name +
                    " needs about " + std::to_string(files) +
                    " open files, but a process may have " + std::to_string(machine.most_files) +
                    " (ulimit -n); use -n " +
                    std::to_string(std::max(1L, (machine.most_files - needs.files) /
                                                    std::max(1L, needs.files_of_rank))) +
                    " or fewer, or raise it with ulimit -n " + std::to_string(files));
}

void plan_here(JobSpec& spec, const Machine& machine, const StarterNeeds& needs) {
  const std::vector<int>& gpus = spec.devices.gpus;
  if (spec.devices.kind == Kind::listed) {
    check_gpu_list(gpus, machine);
    if (spec.ranks == 0) spec.ranks = static_cast<int>(gpus.size());
    check_list_length(gpus, spec.ranks, "this machine");
    return;
  }
  if (spec.devices.kind == Kind::automatic) check_device(machine.device, machine);
  const bool use_gpus = !wants_cpu(spec, machine) && machine.gpus > 0;
  if (spec.ranks == 0) spec.ranks = use_gpus ? machine.gpus : 2;
  if (use_gpus && spec.ranks > machine.gpus)
    too_many_ranks(spec.ranks, machine.gpus, "this machine");
  check_limits(spec.ranks, machine, needs);
  if (!use_gpus) spec.devices.kind = Kind::cpu;
}

void plan_on_hosts(JobSpec& spec, const Machine& machine) {
  spec.remote = true;
  const int slots = total_slots(spec.hosts);
  if (spec.ranks == 0) spec.ranks = slots;
  if (spec.ranks > slots)
    throw UserError(count_of(spec.ranks, "rank") + " asked for but the hosts have " +
                    count_of(slots, "slot") +
                    "; raise the numbers in -H h1:4,h2:4 (or slots= in "
                    "the hostfile), or use -n " +
                    std::to_string(slots));
  for (const Host& host : spec.hosts) check_count(std::min(host.slots, spec.ranks), host.name);
  if (wants_cpu(spec, machine)) spec.devices.kind = Kind::cpu;
  if (spec.devices.kind != Kind::listed) return;
  const std::vector<int> counts = ranks_per_host(spec.hosts, spec.ranks);
  const auto most = std::max_element(counts.begin(), counts.end());
  check_list_length(spec.devices.gpus, *most,
                    spec.hosts[static_cast<std::size_t>(most - counts.begin())].name);
}

// Hosts come from the batch system; each finds its own devices.
void plan_in_allocation(JobSpec& spec, const Machine& machine) {
  spec.in_allocation = spec.remote = true;
  if (spec.ranks == 0) spec.ranks = machine.scheduled_tasks;
  if (wants_cpu(spec, machine)) spec.devices.kind = Kind::cpu;
}

// RLIMIT_...; glibc has an enumeration for them, other C libraries numbers.
long soft_limit(auto resource) {
  rlimit limit{};
  const bool unlimited = getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY;
  return unlimited || limit.rlim_cur > static_cast<rlim_t>(LONG_MAX)
             ? LONG_MAX
             : static_cast<long>(limit.rlim_cur);
}

// LONG_MAX when the file is not there or says "max".
long number_in(const char* path) {
  long number = LONG_MAX;
  std::ifstream(path) >> number;
  return number > 0 ? number : LONG_MAX;
}

long most_processes() {
  // The kernel lets root pass the first.
  const long of_user = geteuid() == 0 ? LONG_MAX : soft_limit(RLIMIT_NPROC);
  return std::min({of_user, number_in("/proc/sys/kernel/pid_max"),
                   number_in("/proc/sys/kernel/threads-max"),
                   number_in("/sys/fs/cgroup/pids.max")});
}

}  // namespace

Machine this_machine() {
  const GpuInventory inventory = find_gpus();
  Machine machine;
  machine.gpus = static_cast<int>(inventory.gpus.size());
  machine.gpu_problem = inventory.problem;
  machine.device = environment("CATENA_DEVICE");
  machine.most_processes = most_processes();
  machine.most_files = soft_limit(RLIMIT_NOFILE);
  const SlurmAllocation slurm = slurm_allocation();
  machine.allocation_is_here = !slurm.reaches_out;
  machine.scheduled_tasks = slurm.tasks == 0 && slurm.reaches_out ? slurm.nodes : slurm.tasks;
  // Kubernetes' MPI operator names its hostfile for Open MPI 4, 5 ignores that name.
  for (const char* name : {"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"})
    if (machine.hostfile.empty()) machine.hostfile = environment(name);
  return machine;
}

JobSpec make_plan(JobSpec spec, const Machine& machine, const StarterNeeds& needs) {
  spec.by_srun = needs.in_allocation;
  const bool has_file = !machine.hostfile.empty() && !needs.in_allocation;
  if (spec.hosts.empty() && has_file) spec.hosts = read_hostfile(machine.hostfile);
  if (!spec.hosts.empty()) {
    plan_on_hosts(spec, machine);
  } else if (machine.scheduled_tasks > 0 && !machine.allocation_is_here) {
    plan_in_allocation(spec, machine);
  } else {
    // One task is what Slurm takes for granted when it is asked for GPUs or processors alone.
    const bool listed = spec.devices.kind == Kind::listed;
    if (spec.ranks == 0 && !listed && machine.scheduled_tasks > 1)
      spec.ranks = machine.scheduled_tasks;
    plan_here(spec, machine, needs);
  }
  return spec;
}

std::string device_of_rank(const Devices& devices, int local_rank, int local_size, int gpus_here,
                           const std::string& gpu_problem, bool own_gpus) {
  const bool automatic = devices.kind == Kind::automatic;
  if (devices.kind == Kind::cpu || (automatic && gpus_here == 0))
    return "cpu:" + std::to_string(local_rank % kCpuDevices);
  const std::string here = "host " + host_name();
  if (automatic && own_gpus) return "cuda:0";
  if (automatic) {
    if (local_size > gpus_here) too_many_ranks(local_size, gpus_here, here);
    return "cuda:" + std::to_string(local_rank);
  }
  const int listed = static_cast<int>(devices.gpus.size());
  if (local_rank >= listed)
    throw UserError("--gpus names " + count_of(listed, "GPU") + " but " + here + " runs " +
                    count_of(local_size, "rank") + "; name one GPU a rank");
  const std::string gpu = std::to_string(devices.gpus[static_cast<std::size_t>(local_rank)]);
  if (devices.gpus[static_cast<std::size_t>(local_rank)] >= gpus_here)
    throw UserError("--gpus names GPU " + gpu + " but " + here + " has " +
                    count_of(gpus_here, "GPU") + (gpu_problem.empty() ? "" : ": " + gpu_problem));
  return "cuda:" + gpu;
}

}  // namespace catena::launch
