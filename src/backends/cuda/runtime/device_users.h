// Processes that use the memory of a GPU, for errors: others may have filled it.
#pragma once

#include <string>

namespace catena::gpu {

// "cuda:0 has 139.8 GiB, of which 0.3 GiB are free; process 4711 uses 137.0 GiB, process 4712 (this
// one) uses 0.5 GiB", as far as NVML is installed and says so: from inside a container it may name
// nobody. "" where nothing is known. Needs no context on the GPU. Never throws.
std::string describe_memory(int index) noexcept;

}  // namespace catena::gpu
