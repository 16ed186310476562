// A plug-in that works: it counts how often it was entered.
#include <cstdlib>
#include <string>

#include "catena/core/plugin_entry.h"

CATENA_PLUGIN(usable) {
  const char* entered = std::getenv("CATENA_TEST_ENTERED");
  ::setenv("CATENA_TEST_ENTERED", (std::string(entered ? entered : "") + "x").c_str(), 1);
}
