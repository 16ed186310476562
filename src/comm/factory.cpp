#include "catena/comm/factory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>

#include "catena/comm/internals.h"
#include "catena/comm/trace_clocks.h"
#include "catena/core/log.h"
#include "catena/core/plugin.h"
#include "catena/core/trace.h"
#include "communicator_state.h"
#include "core/environment.h"
#include "core/hint.h"
#include "core/launch_variables.h"
#include "core/slurm_step.h"
#include "threads/threads_transport.h"

namespace catena::comm {

// Environment

namespace {

int number_of(const char* text, int otherwise) {
  if (!text) return otherwise;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  return end == text ? otherwise : static_cast<int>(value);
}

double seconds_of(const char* variable, double otherwise) {
  const char* text = std::getenv(variable);
  if (!text || !*text) return otherwise;
  const std::optional<double> value = positive_number(text);
  CATENA_CHECK(ValueError, value.has_value(), variable, " is '", text,
               "', expected a number of seconds above 0");
  return *value;
}

}  // namespace

LaunchEnvironment launch_environment() {
  LaunchEnvironment e;
  const char* size = first_set(kSizeVariables, &e.source);
  // A program under mpirun inside of a step of Slurm is the mpirun's.
  const std::optional<SlurmStep> step = slurm_step();
  e.launched = size || step;
  if (!e.launched) return e;
  if (!size) e.source = step->source;
  const SlurmStep otherwise = step.value_or(SlurmStep{});
  e.size = std::max(1, number_of(size, size ? 1 : otherwise.size));
  e.rank = number_of(first_set(kRankVariables), otherwise.rank);
  e.local_rank = number_of(first_set({"CATENA_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                      "MV2_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"}),
                           otherwise.local_rank);
  e.local_size = number_of(first_set({"CATENA_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                      "MV2_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}),
                           size && !step ? e.size : otherwise.local_size);
  return e;
}

double timeout_of(const CommunicatorOptions& options) {
  return options.timeout ? *options.timeout : seconds_of("CATENA_TIMEOUT", 600);
}

double start_timeout_of(const CommunicatorOptions& options) {
  return options.start_timeout ? *options.start_timeout : seconds_of("CATENA_START_TIMEOUT", 120);
}

Device default_device(const CommunicatorOptions& options, int local_rank) {
  if (options.device) return *options.device;
  const char* text = std::getenv("CATENA_DEVICE");
  const int gpus = text && *text && std::string_view(text).starts_with("cpu")
                       ? 0
                       : device_count(DeviceType::kCuda);
  if (text && *text && std::string_view(text) != "cuda" && std::string_view(text) != "gpu")
    return Device(text);
  if (text && *text && gpus == 0) require_device(cuda_device(0));
  return gpus > 0 ? cuda_device(local_rank % gpus) : cpu(0);
}

// Making

namespace {

std::mutex makers_mutex;
std::map<std::string, CommunicatorMaker>& makers() {
  static auto* map = new std::map<std::string, CommunicatorMaker>;
  return *map;
}

// A trace that CATENA_TRACE asks for: all ranks have it, and record one.
void align_traces_once(Communicator& comm) {
  static std::atomic<bool> aligned{false};
  if (first_set({"CATENA_TRACE"}) == nullptr || aligned.exchange(true)) return;
  // One that cannot write its part goes on without, and has told why.
  if (comm.all_reduce_value(int(tracing::active()), Reduction::kMin) == 0) return;
  align_traces(comm);
  // And once more at the end, as clocks of hosts drift apart.
  internals(comm).when_all_close([&comm] { align_traces(comm); });
}

CommunicatorPtr make_with_plugin(const char* plugin, const CommunicatorOptions& options) {
  const std::string reason = load_plugin(plugin);
  CATENA_CHECK(CommError, reason.empty(), "create_communicator: the ", plugin,
               " plug-in cannot be used: ", reason, kCheckHint);
  CommunicatorMaker maker;
  {
    std::lock_guard lock(makers_mutex);
    maker = makers()[plugin];
  }
  CATENA_CHECK(CommError, bool(maker), "create_communicator: the plug-in ", plugin,
               " registered no communicator");
  CommunicatorPtr comm = maker(options);
  // Threads that are ranks have one trace, and the ranks of a bootstrap have aligned theirs.
  if (!options.bootstrap) align_traces_once(*comm);
  return comm;
}

CommunicatorPtr make_single(const CommunicatorOptions& options, const char* asked) {
  const LaunchEnvironment launch = launch_environment();
  CATENA_CHECK(CommError, launch.size == 1, "create_communicator: '", asked,
               "' makes a communicator of this process alone, but ", launch.source,
               " says that the job has ", launch.size,
               " ranks; use \"auto\", \"nccl\" or \"mpi\", or run_threads");
  return make_single_rank(default_device(options, launch.local_rank), options);
}

CommunicatorPtr make_auto(const CommunicatorOptions& options) {
  const LaunchEnvironment launch = launch_environment();
  if (launch.size == 1) return make_single(options, "auto");
  if (!default_device(options, launch.local_rank).is_cuda())
    return make_with_plugin("mpi", options);
  const std::string reason = load_plugin("nccl");
  if (reason.empty()) return make_with_plugin("nccl", options);
  logging::warning(
      "create_communicator: GPU arrays travel through host memory by MPI, because the nccl "
      "plug-in cannot be used: ",
      reason);
  return make_with_plugin("mpi", options);
}

struct Alias {
  const char* name;
  const char* implementation;
};
constexpr std::array kAliases = std::to_array<Alias>({
    {"auto", "auto"},
    {"nccl", "nccl"},
    {"pure_nccl", "nccl"},
    {"hierarchical", "nccl"},
    {"two_dimensional", "nccl"},
    {"single_node", "nccl"},
    {"mpi", "mpi"},
    {"flat", "mpi"},
    {"non_cuda_aware", "mpi"},
    {"naive", "mpi"},
    {"threads", "threads"},
    {"dummy", "threads"},
});

}  // namespace

void register_communicator(const std::string& name, CommunicatorMaker maker) {
  std::lock_guard lock(makers_mutex);
  makers()[name] = std::move(maker);
}

CommunicatorPtr create_communicator(const std::string& name, const CommunicatorOptions& options) {
  const auto alias = std::find_if(kAliases.begin(), kAliases.end(),
                                  [&](const Alias& a) { return name == a.name; });
  if (alias == kAliases.end()) {
    std::string known;
    for (const Alias& a : kAliases) known += message(known.empty() ? "" : ", ", a.name);
    fail<ValueError>("create_communicator: unknown name '", name, "', expected one of ", known);
  }
  CommunicatorOptions chosen = options;
  if (name == "naive" && !chosen.device) chosen.device = cpu(0);
  const std::string_view implementation = alias->implementation;
  // Without a launcher there is one rank, and nothing to move between processes.
  const bool alone = !launch_environment().launched && !options.bootstrap;
  if (implementation == "threads") return make_single(chosen, name.c_str());
  if (implementation == "auto") return make_auto(chosen);
  if (implementation == "mpi" && alone) return make_single(chosen, name.c_str());
  CommunicatorPtr comm = make_with_plugin(alias->implementation, chosen);
  CATENA_CHECK(CommError, name != "single_node" || comm->inter_size() == 1,
               "create_communicator: 'single_node' with ranks on ", comm->inter_size(),
               " hosts; use \"nccl\"");
  return comm;
}

CommunicatorPtr make_communicator_at(std::unique_ptr<Transport> transport, Device device,
                                     const CommunicatorOptions& options, BoardPlace place,
                                     uint64_t id) {
  auto state = std::make_unique<Communicator::State>(std::move(transport), device, options, id);
  state->place = std::move(place);
  if (state->place.board)
    state->own_slot = state->place.board->slot(state->place.slots[size_t(state->topology.rank)]);
  auto comm = std::make_shared<Communicator>(std::move(state));
  internals(*comm).transport().attach(*comm);
  return comm;
}

CommunicatorPtr make_communicator(std::unique_ptr<Transport> transport, Device device,
                                  const CommunicatorOptions& options) {
  // All ranks create their communicators in one order, so a number identifies each everywhere:
  // counted by the control communicator (ranks may be threads), or by the process.
  CallRecord number;
  if (const CommunicatorPtr control = transport->control()) {
    auto& parent = Communicator::State::of(*control);
    number.sequence = ++parent.made_over_it;
    BoardPlace place = parent.place;
    return make_communicator_at(std::move(transport), device, options, std::move(place),
                                fold_call(parent.id, number));
  }
  static std::atomic<uint64_t> made{0};
  number.sequence = ++made;
  const uint64_t id = fold_call(0, number);
  // The calls that find the board are not counted among the user's.
  CommunicatorPtr comm = make_communicator_at(std::move(transport), device, options, {}, ~id);
  set_place(*comm, find_board(*comm), id);
  return comm;
}

}  // namespace catena::comm
