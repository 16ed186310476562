// Entry points of libcatena_cudnn, which put cuDNN before the built-in kernels of GPUs.
#include "catena/core/plugin_entry.h"

namespace catena::families {
#define CATENA_ITEM(name) void cudnn_##name();
#include "lists/cudnn_families.inc"
#undef CATENA_ITEM
}  // namespace catena::families

// Registers the providers alone, which needs no GPU: tests ask for them on any machine.
extern "C" __attribute__((visibility("default"))) void catena_plugin_kernels() {
#define CATENA_ITEM(name) catena::families::cudnn_##name();
#include "lists/cudnn_families.inc"
#undef CATENA_ITEM
}

CATENA_PLUGIN(cudnn) { catena_plugin_kernels(); }
