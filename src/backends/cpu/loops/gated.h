// Table of the loops of gated activations, compiled once for each x86-64 level. See tables.h for
// what it may include.
#pragma once

#include <cstdint>

#include "backends/cpu/loops/levels.h"

namespace catena::host {

// Loops over n adjacent numbers as they are stored, by GateFunction.
struct GatedLoops {
  struct Forward {
    const void *gate, *x;
    void* y;
  };
  void (*forward[3])(const Forward& f, int64_t n);
  // g_gate or gx may be null.
  struct Backward {
    const void *gate, *x, *gy;
    void *g_gate, *gx;
  };
  void (*backward[3])(const Backward& b, int64_t n);
};

using GatedTables = LoopsOfFloats<GatedLoops>;
CATENA_DECLARE_LOOPS(GatedTables)

}  // namespace catena::host
