#include "plan/gpus.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/text.h"

namespace catena::launch {
namespace {

// The part of nvml.h that is used here; this interface has been stable since NVML 5.
using NvmlDevice = void*;
struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlPci {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};

class Nvml {
 public:
  Nvml() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (!library_) return;
    const bool complete =
        load(init_, "nvmlInit_v2") && load(count_, "nvmlDeviceGetCount_v2") &&
        load(device_, "nvmlDeviceGetHandleByIndex_v2") && load(name_, "nvmlDeviceGetName") &&
        load(uuid_, "nvmlDeviceGetUUID") && load(pci_, "nvmlDeviceGetPciInfo_v3") &&
        load(memory_, "nvmlDeviceGetMemoryInfo") && load(error_, "nvmlErrorString") &&
        load(driver_, "nvmlSystemGetDriverVersion") &&
        load(cuda_, "nvmlSystemGetCudaDriverVersion");
    load(ancestor_, "nvmlDeviceGetTopologyCommonAncestor");
    load(link_state_, "nvmlDeviceGetNvLinkState");
    load(p2p_, "nvmlDeviceGetP2PStatus");
    if (!complete) {
      problem_ = "libnvidia-ml.so.1 lacks functions that catena-run needs; update the driver";
      return;
    }
    const int status = init_();
    if (status != 0) problem_ = std::string("the NVIDIA driver does not answer: ") + error_(status);
    ready_ = status == 0;
  }

  bool ready() const { return ready_; }
  const std::string& problem() const { return problem_; }

  std::string driver() const {
    char text[80] = {};
    return driver_(text, sizeof(text)) == 0 ? text : "unknown";
  }
  std::string cuda() const {
    int version = 0;
    if (cuda_(&version) != 0) return "unknown";
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  }
  unsigned count() const {
    unsigned count = 0;
    return count_(&count) == 0 ? count : 0;
  }
  NvmlDevice device(unsigned index) const {
    NvmlDevice device = nullptr;
    return device_(index, &device) == 0 ? device : nullptr;
  }
  Gpu describe(NvmlDevice device) const;
  std::string link(NvmlDevice a, NvmlDevice b) const;

 private:
  template <typename Pointer>
  bool load(Pointer& pointer, const char* name) {
    pointer = reinterpret_cast<Pointer>(dlsym(library_, name));
    return pointer != nullptr;
  }
  int active_nvlinks(NvmlDevice device) const;

  void* library_ = nullptr;
  bool ready_ = false;
  std::string problem_ = "no NVIDIA driver (libnvidia-ml.so.1 was not found)";
  int (*init_)() = nullptr;
  int (*count_)(unsigned*) = nullptr;
  int (*device_)(unsigned, NvmlDevice*) = nullptr;
  int (*name_)(NvmlDevice, char*, unsigned) = nullptr;
  int (*uuid_)(NvmlDevice, char*, unsigned) = nullptr;
  int (*pci_)(NvmlDevice, NvmlPci*) = nullptr;
  int (*memory_)(NvmlDevice, NvmlMemory*) = nullptr;
  const char* (*error_)(int) = nullptr;
  int (*driver_)(char*, unsigned) = nullptr;
  int (*cuda_)(int*) = nullptr;
  int (*ancestor_)(NvmlDevice, NvmlDevice, int*) = nullptr;
  int (*link_state_)(NvmlDevice, unsigned, int*) = nullptr;
  int (*p2p_)(NvmlDevice, NvmlDevice, int, int*) = nullptr;
};

// NVML writes "00000000:1B:00.0", sysfs "0000:1b:00.0".
std::string sysfs_bus_id(std::string bus_id) {
  std::transform(bus_id.begin(), bus_id.end(), bus_id.begin(),
                 [](unsigned char letter) { return std::tolower(letter); });
  const std::size_t colon = bus_id.find(':');
  if (colon != std::string::npos && colon > 4) bus_id.erase(0, colon - 4);
  return bus_id;
}

Gpu Nvml::describe(NvmlDevice device) const {
  Gpu gpu;
  char text[128] = {};
  if (name_(device, text, sizeof(text)) == 0) gpu.name = text;
  if (uuid_(device, text, sizeof(text)) == 0) gpu.uuid = text;
  NvmlPci pci{};
  if (pci_(device, &pci) == 0) gpu.bus_id = sysfs_bus_id(pci.bus_id);
  NvmlMemory memory{};
  if (memory_(device, &memory) == 0) gpu.memory = memory.total;
  return gpu;
}

int Nvml::active_nvlinks(NvmlDevice device) const {
  constexpr unsigned kMaxLinks = 18;
  int active = 0;
  for (unsigned link = 0; link_state_ && link < kMaxLinks; ++link) {
    int state = 0;
    if (link_state_(device, link, &state) == 0 && state == 1) ++active;
  }
  return active;
}

std::string Nvml::link(NvmlDevice a, NvmlDevice b) const {
  constexpr int kP2pNvlink = 2;
  int status = 1;
  if (p2p_ && p2p_(a, b, kP2pNvlink, &status) == 0 && status == 0)
    return "NV" + std::to_string(std::min(active_nvlinks(a), active_nvlinks(b)));
  int level = -1;
  if (!ancestor_ || ancestor_(a, b, &level) != 0) return "?";
  switch (level) {
    case 0:
    case 10: return "PIX";
    case 20: return "PXB";
    case 30: return "PHB";
    case 40: return "NODE";
    default: return "SYS";
  }
}

// Tests of the rules about GPUs run on machines without any.
bool pretend_gpus(GpuInventory& inventory) {
  const char* count = std::getenv("CATENA_TEST_GPU_COUNT");
  const auto number = count ? parse_number(count) : std::nullopt;
  if (!number) return false;
  for (int i = 0; i < *number; ++i) inventory.gpus.push_back({i, "test GPU", "", "", 0});
  if (*number == 0) inventory.problem = "CATENA_TEST_GPU_COUNT is 0";
  return true;
}

}  // namespace

std::vector<int> visible_positions(const char* visible, const std::vector<std::string>& uuids) {
  std::vector<int> positions;
  if (!visible) {
    for (std::size_t i = 0; i < uuids.size(); ++i) positions.push_back(static_cast<int>(i));
    return positions;
  }
  for (const std::string& part : split(visible, ',')) {
    const std::string entry(trim(part));
    int position = parse_number(entry).value_or(-1);
    if (position < 0 && !entry.empty()) {
      const auto found = std::find_if(uuids.begin(), uuids.end(), [&](const std::string& uuid) {
        return uuid.starts_with(entry);
      });
      position = found == uuids.end() ? -1 : static_cast<int>(found - uuids.begin());
    }
    if (position < 0 || position >= static_cast<int>(uuids.size())) break;
    positions.push_back(position);
  }
  return positions;
}

GpuInventory find_gpus(bool with_links) {
  GpuInventory inventory;
  if (pretend_gpus(inventory)) return inventory;
  const Nvml nvml;
  if (!nvml.ready()) {
    inventory.problem = nvml.problem();
    return inventory;
  }
  inventory.driver = nvml.driver();
  inventory.cuda = nvml.cuda();
  std::vector<NvmlDevice> devices;
  std::vector<Gpu> all;
  std::vector<std::string> uuids;
  for (unsigned i = 0; i < nvml.count(); ++i) {
    devices.push_back(nvml.device(i));
    all.push_back(devices.back() ? nvml.describe(devices.back()) : Gpu{});
    uuids.push_back(all.back().uuid);
  }
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::vector<int> positions = visible_positions(visible, uuids);
  for (const int position : positions) {
    Gpu gpu = all[static_cast<std::size_t>(position)];
    gpu.index = static_cast<int>(inventory.gpus.size());
    inventory.gpus.push_back(std::move(gpu));
  }
  if (inventory.gpus.empty())
    inventory.problem = all.empty()
                            ? "the NVIDIA driver reports no GPU"
                            : "CUDA_VISIBLE_DEVICES='" + std::string(visible ? visible : "") +
                                  "' hides all " + std::to_string(all.size()) + " GPUs";
  if (!with_links) return inventory;
  for (const int a : positions) {
    auto& row = inventory.links.emplace_back();
    for (const int b : positions)
      row.push_back(a == b ? "X"
                           : nvml.link(devices[static_cast<std::size_t>(a)],
                                       devices[static_cast<std::size_t>(b)]));
  }
  return inventory;
}

}  // namespace catena::launch
