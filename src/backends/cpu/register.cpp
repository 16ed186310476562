// Runs the families of the CPU backend. See register.h and common/family.h.
#include "backends/cpu/register.h"

#include "backends/common/composed.h"

namespace catena {

namespace families {
#define CATENA_ITEM(name) void cpu_##name();
#include "lists/cpu_families.inc"
#undef CATENA_ITEM
}  // namespace families

void register_cpu_kernels() {
#define CATENA_ITEM(name) families::cpu_##name();
#include "lists/cpu_families.inc"
#undef CATENA_ITEM
  register_composed_kernels(DeviceType::kCpu);
}

}  // namespace catena
