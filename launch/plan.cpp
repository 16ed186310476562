#include "plan.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "gpus.h"
#include "status/status_board.h"
#include "text.h"

namespace catena::launch {
namespace {

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

std::string gpu_list(const std::vector<int>& gpus) {
  std::vector<std::string> numbers;
  for (const int gpu : gpus) numbers.push_back(std::to_string(gpu));
  return "cuda:" + join(numbers, ",");
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
  const std::string kind = device.substr(0, device.find(':'));
  if (kind.empty() || kind == "auto" || kind == "cpu") return;
  if (kind != "cuda" && kind != "gpu")
    throw UserError("CATENA_DEVICE=" + device + " names no device; expected cpu or cuda");
  if (machine.gpus == 0)
    throw UserError("CATENA_DEVICE=" + device + " but this machine has 0 GPUs: " +
                    machine.gpu_problem + "; unset it, or use --cpu");
}

bool wants_cpu(const Options& options, const Machine& machine) {
  if (options.cpu) return true;
  return options.gpus.empty() && (machine.device == "cpu" || machine.device.starts_with("cpu:"));
}

// mpirun would find out halfway, in words that tell nothing.
void check_count(int ranks, const std::string& where) {
  if (ranks <= comm::StatusBoard::kMaxSlots) return;
  throw UserError(count_of(ranks, "rank") + " asked for on " + where + ", but one host takes " +
                  std::to_string(comm::StatusBoard::kMaxSlots) +
                  " at most; use a smaller -n, or more hosts with -H h1:4,h2:4");
}

// Of mpirun: the pipes of each rank, and its own. Measured with Open MPI 4.1: 4 n + 26 is what just
// works.
constexpr long kFilesOfRank = 4, kFilesOfMpirun = 32;

void check_limits(int ranks, const Machine& machine) {
  check_count(ranks, "this machine");
  // A rank process and its program; mpirun itself and the threads of all have to fit in as well.
  constexpr long kProcessesOfRank = 2;
  if (kProcessesOfRank * ranks > machine.most_processes)
    throw UserError(count_of(ranks, "rank") + " asked for, which are " +
                    std::to_string(kProcessesOfRank * ranks) + " processes, but there may be " +
                    std::to_string(machine.most_processes) +
                    " here (ulimit -u, kernel.pid_max, pids.max of the control group); use a "
                    "smaller -n, or raise the limit");
  const long files = kFilesOfRank * ranks + kFilesOfMpirun;
  if (files > machine.most_files)
    throw UserError(
        count_of(ranks, "rank") + " asked for, for which mpirun needs about " +
        std::to_string(files) + " open files, but a process may have " +
        std::to_string(machine.most_files) + " (ulimit -n); use -n " +
        std::to_string(std::max(1L, (machine.most_files - kFilesOfMpirun) / kFilesOfRank)) +
        " or fewer, or raise it with ulimit -n " + std::to_string(files));
}

Plan plan_here(const Options& options, const Machine& machine, bool cpu) {
  Plan plan;
  if (!options.gpus.empty()) {
    check_gpu_list(options.gpus, machine);
    plan.ranks = options.ranks.value_or(static_cast<int>(options.gpus.size()));
    check_list_length(options.gpus, plan.ranks, "this machine");
    plan.devices = gpu_list(options.gpus);
    return plan;
  }
  if (!options.cpu) check_device(machine.device, machine);
  const bool use_gpus = !cpu && machine.gpus > 0;
  plan.ranks = options.ranks.value_or(use_gpus ? machine.gpus : 2);
  if (use_gpus && plan.ranks > machine.gpus)
    too_many_ranks(plan.ranks, machine.gpus, "this machine");
  check_limits(plan.ranks, machine);
  plan.devices = use_gpus ? "auto" : "cpu";
  return plan;
}

Plan plan_on_hosts(const Options& options, std::vector<Host> hosts, bool cpu) {
  Plan plan;
  plan.hosts = std::move(hosts);
  plan.several_hosts = plan.hosts.size() > 1;
  const int slots = total_slots(plan.hosts);
  plan.ranks = options.ranks.value_or(slots);
  if (plan.ranks > slots)
    throw UserError(count_of(plan.ranks, "rank") + " asked for but the hosts have " +
                    count_of(slots, "slot") +
                    "; raise the numbers in -H h1:4,h2:4 (or slots= in "
                    "the hostfile), or use -n " +
                    std::to_string(slots));
  for (const Host& host : plan.hosts) check_count(std::min(host.slots, plan.ranks), host.name);
  plan.devices = cpu ? "cpu" : options.gpus.empty() ? "auto" : gpu_list(options.gpus);
  if (!options.gpus.empty()) {
    const std::vector<int> counts = ranks_per_host(plan.hosts, plan.ranks);
    const auto most = std::max_element(counts.begin(), counts.end());
    check_list_length(options.gpus, *most,
                      plan.hosts[static_cast<std::size_t>(most - counts.begin())].name);
  }
  return plan;
}

// Hosts come from the batch system; each finds its own devices.
Plan plan_in_allocation(const Options& options, const Machine& machine, bool cpu) {
  Plan plan;
  plan.several_hosts = true;
  plan.ranks = options.ranks.value_or(machine.scheduled_tasks);
  plan.devices = cpu ? "cpu" : options.gpus.empty() ? "auto" : gpu_list(options.gpus);
  return plan;
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
  if (parse_number(environment("SLURM_JOB_NUM_NODES")).value_or(1) > 1)
    machine.scheduled_tasks = parse_number(environment("SLURM_NTASKS")).value_or(0);
  // Kubernetes' MPI operator names its hostfile for Open MPI 4, 5 ignores that name.
  for (const char* name : {"OMPI_MCA_orte_default_hostfile", "PRTE_MCA_prte_default_hostfile"})
    if (machine.hostfile.empty()) machine.hostfile = environment(name);
  return machine;
}

Plan make_plan(const Options& options, const Machine& machine) {
  const bool cpu = wants_cpu(options, machine);
  if (!options.hosts.empty()) return plan_on_hosts(options, options.hosts, cpu);
  if (!machine.hostfile.empty())
    return plan_on_hosts(options, read_hostfile(machine.hostfile), cpu);
  if (machine.scheduled_tasks > 0) return plan_in_allocation(options, machine, cpu);
  return plan_here(options, machine, cpu);
}

std::string device_of_rank(const std::string& devices, int local_rank, int local_size,
                           int gpus_here, const std::string& gpu_problem) {
  if (devices == "cpu" || (devices == "auto" && gpus_here == 0))
    return "cpu:" + std::to_string(local_rank % kCpuDevices);
  const std::string rank = std::to_string(local_rank);
  const std::string here = "host " + host_name();
  if (devices == "auto") {
    if (local_size > gpus_here) too_many_ranks(local_size, gpus_here, here);
    return "cuda:" + rank;
  }
  const std::vector<std::string> list = split(devices.substr(devices.find(':') + 1), ',');
  if (local_rank >= static_cast<int>(list.size()))
    throw UserError("--gpus names " + count_of(static_cast<int>(list.size()), "GPU") + " but " +
                    here + " runs " + count_of(local_size, "rank") + "; name one GPU a rank");
  const std::string& gpu = list[static_cast<std::size_t>(local_rank)];
  if (parse_number(gpu).value_or(0) >= gpus_here)
    throw UserError("--gpus names GPU " + gpu + " but " + here + " has " +
                    count_of(gpus_here, "GPU") + (gpu_problem.empty() ? "" : ": " + gpu_problem));
  return "cuda:" + gpu;
}

}  // namespace catena::launch
