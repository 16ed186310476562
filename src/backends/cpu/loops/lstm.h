// Table of the loops of an LSTM's step, compiled once for each x86-64 level. See tables.h for what
// it may include.
#pragma once

#include <cstdint>

#include "backends/cpu/loops/levels.h"

namespace catena::host {

// One sequence of n cells. Gates are four blocks of n: a, i, f, o. Results may be in the place of
// the operands of the same element.
template <class T>
struct LstmLoops {
  // c_prev is null at the start.
  struct Forward {
    const T *gates, *c_prev;
    T *activated, *c, *h;
  };
  void (*forward)(const Forward& f, int64_t n);
  // c_prev, gh, gh_next and gc may be null.
  struct Backward {
    const T *activated, *c_prev, *c, *gh, *gh_next, *gc;
    T *g_gates, *gc_prev;
    bool of_gates;  // `activated` has the gates before their activation
  };
  void (*backward)(const Backward& b, int64_t n);
};

using LstmTables = LoopsByType<LstmLoops>;
CATENA_DECLARE_LOOPS(LstmTables)

}  // namespace catena::host
