// What most benchmarks begin with, compiled once for all of them (CATENA_PCH). They must not rely
// on it: builds with ccache do without.
#pragma once

#include "catena/catena.h"
#include "timing.h"
