// The GPUs that a process started now would see. Asks NVIDIA's management library, which the
// driver brings along, through dlopen: no CUDA is needed and no context is created.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace catena::launch {

struct Gpu {
  int index = 0;  // as in cuda:N
  std::string name;
  std::string uuid;
  std::string bus_id;  // "0000:1b:00.0", as sysfs writes it
  std::uint64_t memory = 0;
};

struct GpuInventory {
  std::vector<Gpu> gpus;
  std::string problem;  // why there is none, "" when there are GPUs
  std::string driver;   // "550.54.15"
  std::string cuda;     // newest CUDA version this driver runs, "12.4"
  // links[a][b]: "NV18", "PIX", "PXB", "PHB", "NODE", "SYS", as nvidia-smi topo -m names them.
  std::vector<std::vector<std::string>> links;
};

// CUDA_VISIBLE_DEVICES chooses and orders the GPUs, as it does in CUDA with
// CUDA_DEVICE_ORDER=PCI_BUS_ID, which the launcher sets for its ranks.
GpuInventory find_gpus(bool with_links = false);

// Positions in `uuids` that CUDA_VISIBLE_DEVICES selects: numbers or prefixes of UUIDs; the list
// ends at the first entry that names nothing. A null pointer selects all.
std::vector<int> visible_positions(const char* visible, const std::vector<std::string>& uuids);

}  // namespace catena::launch
