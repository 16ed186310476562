// Table of the loops of rotary positions, compiled once for each x86-64 level. See tables.h for
// what it may include.
#pragma once

#include <cstdint>

#include "backends/cpu/loops/levels.h"

namespace catena::host {

template <class T>
struct RotaryLoops {
  // n is a multiple of 16. cos = factor * cos(position * frequency), sin with its own factor.
  struct Angles {
    const double* frequencies;
    double position, cos_factor, sin_factor;
    T *cos, *sin;
  };
  void (*angles)(const Angles& a, int64_t n);
  // n pairs, (x[j], x[n + j]) or, interleaved, (x[2j], x[2j + 1]).
  struct Rotate {
    const T *x, *cos, *sin;
    T* y;
  };
  void (*halves)(const Rotate& r, int64_t n);
  void (*interleaved)(const Rotate& r, int64_t n);
};

using RotaryTables = LoopsByType<RotaryLoops>;
CATENA_DECLARE_LOOPS(RotaryTables)

}  // namespace catena::host
