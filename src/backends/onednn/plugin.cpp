// Entry point of libcatena_onednn, which puts oneDNN before the built-in kernels of the CPU.
#include "catena/core/plugin_entry.h"

#include "backends/onednn/convolution.h"
#include "catena/core/error.h"

namespace catena::families {
#define CATENA_ITEM(name) void onednn_##name();
#include "lists/onednn_families.inc"
#undef CATENA_ITEM
}  // namespace catena::families

CATENA_PLUGIN(onednn) {
  using namespace catena;
  onednn::check_version();
#define CATENA_ITEM(name) families::onednn_##name();
#include "lists/onednn_families.inc"
#undef CATENA_ITEM
}
