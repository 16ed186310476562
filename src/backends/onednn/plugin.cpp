// Entry point of libcatena_onednn, which puts oneDNN before the built-in kernels of the CPU.
#include "catena/core/plugin_entry.h"

#include <dnnl.h>

#include "catena/core/error.h"

namespace catena::families {
#define CATENA_ITEM(name) void onednn_##name();
#include "lists/onednn_families.inc"
#undef CATENA_ITEM
}  // namespace catena::families

CATENA_PLUGIN(onednn) {
  using namespace catena;
  const int loaded = dnnl_version()->major;
  CATENA_CHECK(DeviceError, loaded == DNNL_VERSION_MAJOR, "oneDNN: the library loaded has version ",
               loaded, ", the plug-in was built for version ", DNNL_VERSION_MAJOR,
               "; build catena again");
#define CATENA_ITEM(name) families::onednn_##name();
#include "lists/onednn_families.inc"
#undef CATENA_ITEM
}
