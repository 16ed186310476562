// Runs the composed families. See family.h.
#include "backends/common/composed.h"

namespace catena {

namespace families {
#define CATENA_ITEM(name) void composed_##name(DeviceType type);
#include "lists/composed_families.inc"
#undef CATENA_ITEM
}  // namespace families

void register_composed_kernels(DeviceType type) {
#define CATENA_ITEM(name) families::composed_##name(type);
#include "lists/composed_families.inc"
#undef CATENA_ITEM
}

}  // namespace catena
