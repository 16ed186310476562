// A plug-in whose vendor's library the loader does not find.
#include "catena/core/plugin_entry.h"

extern "C" int catena_test_vendor_version();

CATENA_PLUGIN(needy) { catena_test_vendor_version(); }
