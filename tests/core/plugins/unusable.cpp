// A plug-in that finds at its start that it cannot work here.
#include <stdexcept>

#include "catena/core/plugin.h"

CATENA_PLUGIN(unusable) { throw std::runtime_error("the vendor library is too old"); }
