// A plug-in that finds at its start that it cannot work here.
#include "catena/core/error.h"
#include "catena/core/plugin_entry.h"

CATENA_PLUGIN(unusable) { catena::fail<catena::DeviceError>("the vendor library is too old"); }
