#include "rank/rank_identity.h"

#include <cstdlib>

#include "base/text.h"
#include "plan/gpus.h"
#include "plan/placement.h"
#include "plan/plan.h"
#include "plan/slurm.h"

namespace catena::launch {
namespace {

// The variables in which a starter passes a rank its place.
struct RankVariables {
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;
  const char* starter;
};
constexpr RankVariables kOpenMpi = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                    "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                    "Open MPI's mpirun"};

int number_from(const char* name, const char* starter) {
  const char* text = std::getenv(name);
  const auto number = text ? parse_number(text) : std::nullopt;
  if (!number)
    throw UserError(std::string("the rank process finds no number in ") + name +
                    "; it must be started by " + starter);
  return *number;
}

void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }
void set(const char* name, int value) { set(name, std::to_string(value)); }
void set_default(const char* name, const std::string& value) { setenv(name, value.c_str(), 0); }

void set_terminal(const std::string& terminal, int rank) {
  unsetenv("CATENA_TERMINAL");
  if (terminal.empty()) return;
  set("CATENA_TERMINAL", 1);
  const std::size_t cross = terminal.find('x');
  if (rank != 0 || cross == std::string::npos) return;
  set("COLUMNS", terminal.substr(0, cross));
  set("LINES", terminal.substr(cross + 1));
}

void bind(const RankIdentity& identity, const std::string& device, const GpuInventory& inventory) {
  cpu_set_t cpus = cpus_of_cpu_rank(identity.local_rank, identity.local_size);
  if (device.starts_with("cuda:")) {
    const auto gpu = static_cast<std::size_t>(parse_number(device.substr(5)).value_or(0));
    cpus = cpus_near_gpu(gpu < inventory.gpus.size() ? inventory.gpus[gpu].bus_id : "");
  }
  sched_setaffinity(0, sizeof(cpus), &cpus);
}

}  // namespace

RankIdentity rank_identity_from_environment(bool by_srun) {
  if (by_srun) {
    const SlurmTask task = slurm_task();
    return {task.rank, task.size, task.local_rank, task.local_size, host_name(), task.step};
  }
  const RankVariables& variables = kOpenMpi;
  const auto number = [&](const char* name) { return number_from(name, variables.starter); };
  RankIdentity identity;
  identity.rank = number(variables.rank);
  identity.size = number(variables.size);
  identity.local_rank = number(variables.local_rank);
  identity.local_size = number(variables.local_size);
  identity.host = host_name();
  return identity;
}

std::string prepare_environment(const RankIdentity& identity, const JobSpec& spec,
                                const std::string& board) {
  const GpuInventory inventory =
      spec.devices.kind == Devices::Kind::cpu ? GpuInventory{} : find_gpus();
  const int gpus = static_cast<int>(inventory.gpus.size());
  const std::string device =
      device_of_rank(spec.devices, identity.local_rank, identity.local_size, gpus,
                     inventory.problem, spec.by_srun && slurm_binds_gpus(gpus));
  set("CATENA_LAUNCHED", 1);
  set("CATENA_RANK", identity.rank);
  set("CATENA_SIZE", identity.size);
  set("CATENA_LOCAL_RANK", identity.local_rank);
  set("CATENA_LOCAL_SIZE", identity.local_size);
  set("CATENA_DEVICE", device);
  set("CATENA_TIMEOUT", format_seconds(spec.timeout));
  set("CATENA_START_TIMEOUT", format_seconds(spec.start_timeout));
  if (spec.restart) set("CATENA_RESTART", *spec.restart);
  if (board.empty())
    unsetenv("CATENA_STATUS_BOARD");
  else
    set("CATENA_STATUS_BOARD", board);
  set_terminal(spec.terminal, identity.rank);
  // Before binding, for the threads are shared out over all cores of the host.
  set_default("OMP_NUM_THREADS",
              std::to_string(threads_per_rank(usable_cores(), identity.local_size)));
  // CUDA's own order puts the fastest GPU first; this one is that of nvidia-smi and of --gpus.
  set_default("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  if (!spec.no_bind) bind(identity, device, inventory);
  return device;
}

}  // namespace catena::launch
