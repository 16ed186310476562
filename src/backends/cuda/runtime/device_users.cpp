#include "backends/cuda/runtime/device_users.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <unistd.h>

#include <vector>

#include "backends/cuda/jit/compile/function_lookup.h"
#include "catena/core/error.h"

namespace catena::gpu {
namespace {

// NVML's interface as far as it is used: toolkits come without its header.
using NvmlDevice = void*;
struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlProcess {
  unsigned pid;
  unsigned long long bytes;  // all ones where it is not known
  unsigned gpu_instance, compute_instance;
};

struct Nvml {
  jit::FunctionLookup functions;
  int (*init)() = functions("nvmlInit_v2");
  int (*device)(const char* bus_id,
                NvmlDevice* device) = functions("nvmlDeviceGetHandleByPciBusId_v2");
  int (*memory)(NvmlDevice device, NvmlMemory* memory) = functions("nvmlDeviceGetMemoryInfo");
  int (*processes)(NvmlDevice device, unsigned* count,
                   NvmlProcess* list) = functions("nvmlDeviceGetComputeRunningProcesses_v3");
  bool works = false;
};

Nvml open_nvml() {
  Nvml nvml{jit::FunctionLookup(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL))};
  nvml.works = nvml.functions.missing().empty() && nvml.init() == 0;
  return nvml;
}

std::string gib(unsigned long long bytes) {
  const unsigned long long tenths = (bytes * 10 + (1ull << 29)) >> 30;
  return message(tenths / 10, ".", tenths % 10, " GiB");
}

std::string list_processes(const Nvml& nvml, NvmlDevice device) {
  constexpr unsigned kMost = 64;
  std::vector<NvmlProcess> processes(kMost);
  unsigned count = kMost;
  if (nvml.processes(device, &count, processes.data()) != 0) return {};
  std::string text;
  for (unsigned i = 0; i < count; ++i) {
    const NvmlProcess& process = processes[i];
    const bool is_known = process.bytes != ~0ull;
    text += message(i == 0 ? "; " : ", ", "process ", process.pid,
                    process.pid == unsigned(getpid()) ? " (this one)" : "", " uses ",
                    is_known ? gib(process.bytes) : "memory");
  }
  return text;
}

std::string describe(int index) {
  static const Nvml nvml = open_nvml();
  char bus_id[32] = {};
  NvmlDevice device = nullptr;
  NvmlMemory memory{};
  if (!nvml.works || cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, index) != cudaSuccess ||
      nvml.device(bus_id, &device) != 0 || nvml.memory(device, &memory) != 0)
    return {};
  return message("cuda:", index, " has ", gib(memory.total), ", of which ", gib(memory.free),
                 " are free", list_processes(nvml, device));
}

}  // namespace

std::string describe_memory(int index) noexcept {
  try {
    return describe(index);
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace catena::gpu
