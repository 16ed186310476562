// The single questions of catena-run --check.
#pragma once

#include <string>
#include <vector>

#include "plan/gpus.h"
#include "spec/job_spec.h"

namespace catena::launch {

// One line of the answer.
struct CheckItem {
  // missing: would be of use here; absent: is not there and nothing on this machine asks for it.
  enum class State { good, absent, missing };
  State state = State::good;
  std::string name;      // "NCCL"
  std::string text;      // "2.21.5, /usr/lib/x86_64-linux-gnu/libnccl.so.2"
  std::string packages;  // of apt, that put a missing thing right: "libnccl2 libnccl-dev"
};
using CheckItems = std::vector<CheckItem>;

// What probes depend on.
struct CheckContext {
  JobSpec job;                               // which starter
  GpuInventory gpus;                         // with links
  std::vector<std::string> library_folders;  // the first that has libcatena is asked

  bool has_gpus() const { return !gpus.gpus.empty(); }
};
// Of this machine. libcatena is looked for in CATENA_PLUGIN_PATH and where builds and installations
// put it, seen from this program.
CheckContext make_check_context(const JobSpec& job);
std::vector<std::string> check_library_folders();
// The file of libcatena in the first of them that has it; "" when none has.
std::string find_libcatena(const CheckContext& context);

struct Probe {
  const char* name;
  CheckItems (*run)(const CheckContext& context);
};

// The machine, its starter and its files.
CheckItems probe_host(const CheckContext& context);
CheckItems probe_shared_memory(const CheckContext& context);
CheckItems probe_locked_memory(const CheckContext& context);
CheckItems probe_gpus(const CheckContext& context);
CheckItems probe_starter(const CheckContext& context);
CheckItems probe_kernel_cache(const CheckContext& context);
CheckItems probe_dataset(const CheckContext& context);

// Libraries (cli/library_probes.cpp). libcatena says whether each plug-in can be used, and where
// GPU kernels come from; without it plug-ins are only opened. What a GPU plug-in reports on a
// machine without GPUs is not shown as a problem.
CheckItems probe_mpi_compiler(const CheckContext& context);
CheckItems probe_vendor_libraries(const CheckContext& context);
CheckItems probe_libcatena(const CheckContext& context);
CheckItems probe_plugins(const CheckContext& context);
CheckItems probe_kernels(const CheckContext& context);

// For probes of missing things.
CheckItem not_found(const std::string& name, bool wanted, const std::string& packages,
                    const std::string& purpose);
// "2.21.5, /usr/lib/libnccl.so.2"
std::string with_path(const std::string& text, const std::string& path);

}  // namespace catena::launch
