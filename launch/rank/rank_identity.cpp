#include "rank/rank_identity.h"

#include <cstdio>
#include <cstdlib>

#include "base/text.h"
#include "plan/gpus.h"
#include "plan/placement.h"

namespace catena::launch {
namespace {

int number_from(const char* name) {
  const char* text = std::getenv(name);
  const auto number = text ? parse_number(text) : std::nullopt;
  if (!number)
    throw UserError(std::string("the rank process finds no number in ") + name +
                    "; it must be started by Open MPI's mpirun");
  return *number;
}

void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }
void set(const char* name, int value) { set(name, std::to_string(value)); }
void set_default(const char* name, const std::string& value) { setenv(name, value.c_str(), 0); }

std::string format_seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", seconds);
  return text;
}

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

RankIdentity rank_identity_from_environment() {
  RankIdentity identity;
  identity.rank = number_from("OMPI_COMM_WORLD_RANK");
  identity.size = number_from("OMPI_COMM_WORLD_SIZE");
  identity.local_rank = number_from("OMPI_COMM_WORLD_LOCAL_RANK");
  identity.local_size = number_from("OMPI_COMM_WORLD_LOCAL_SIZE");
  identity.host = host_name();
  return identity;
}

std::string prepare_environment(const RankIdentity& identity, const RankSettings& settings,
                                const std::string& board) {
  const GpuInventory inventory = settings.devices == "cpu" ? GpuInventory{} : find_gpus();
  const std::string device =
      device_of_rank(settings.devices, identity.local_rank, identity.local_size,
                     static_cast<int>(inventory.gpus.size()), inventory.problem);
  set("CATENA_LAUNCHED", 1);
  set("CATENA_RANK", identity.rank);
  set("CATENA_SIZE", identity.size);
  set("CATENA_LOCAL_RANK", identity.local_rank);
  set("CATENA_LOCAL_SIZE", identity.local_size);
  set("CATENA_DEVICE", device);
  set("CATENA_TIMEOUT", format_seconds(settings.timeout));
  set("CATENA_START_TIMEOUT", format_seconds(settings.start_timeout));
  if (board.empty())
    unsetenv("CATENA_STATUS_BOARD");
  else
    set("CATENA_STATUS_BOARD", board);
  set_terminal(settings.terminal, identity.rank);
  // Before binding, for the threads are shared out over all cores of the host.
  set_default("OMP_NUM_THREADS",
              std::to_string(threads_per_rank(usable_cores(), identity.local_size)));
  // CUDA's own order puts the fastest GPU first; this one is that of nvidia-smi and of --gpus.
  set_default("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  if (settings.bind) bind(identity, device, inventory);
  return device;
}

}  // namespace catena::launch
