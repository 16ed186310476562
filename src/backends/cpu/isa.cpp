// Chooses the loop tables that fit this processor, once.
#include <cstdlib>
#include <cstring>

#include "backends/cpu/loops/tables.h"

namespace catena::host {

namespace {

#define CATENA_FILL(level)                \
  do {                                    \
    level::fill_arithmetic_int(tables);   \
    level::fill_arithmetic_float(tables); \
    level::fill_math_float32(tables);     \
    level::fill_math_float64(tables);     \
    level::fill_logic(tables);            \
    level::fill_gradient(tables);         \
    level::fill_cast_int(tables);         \
    level::fill_cast_float(tables);       \
    level::fill_reduce(tables);           \
    level::fill_arg_reduce(tables);       \
    level::fill_softmax(tables);          \
    level::fill_optimizer(tables);        \
    level::fill_random(tables);           \
    level::fill_epilogue(tables);         \
    tables.isa = "x86-64-" #level;        \
  } while (false)

// Builds without every level (sanitizers) have one that is then required.
int best_level() {
  __builtin_cpu_init();
  const char* wish = std::getenv("CATENA_CPU_ISA");  // "v2", "v3", "v4": for tests and comparisons
  const int limit = wish != nullptr && wish[0] == 'v' ? std::atoi(wish + 1) : 4;
  if (limit >= 4 && __builtin_cpu_supports("x86-64-v4")) return 4;
  if (limit >= 3 && __builtin_cpu_supports("x86-64-v3")) return 3;
  return 2;
}

#if defined(CATENA_HAVE_ISA_v4) && defined(CATENA_HAVE_ISA_v3)
// Simple loops with vectors of 256 bits, which pass large operands on faster than those of 512
// where memory is the limit (docs/decisions.md). The results are the same bits.
void add_streaming_loops(Tables& tables) {
  static Tables narrower;
  v3::fill_arithmetic_int(narrower);
  v3::fill_arithmetic_float(narrower);
  v3::fill_logic(narrower);
  for (int op = 0; op < kOpRows; ++op)
    for (int dtype = 0; dtype < kDtypes; ++dtype)
      if (LoopEntry& entry = tables.loops[op][dtype]; !entry.heavy)
        entry.streaming = narrower.loops[op][dtype].loop;
}
#endif

Tables make_tables() {
  Tables tables{};
  const int level = best_level();
  (void)level;
#ifdef CATENA_HAVE_ISA_v4
  if (level >= 4) {
    CATENA_FILL(v4);
#ifdef CATENA_HAVE_ISA_v3
    add_streaming_loops(tables);
#endif
    return tables;
  }
#endif
#ifdef CATENA_HAVE_ISA_v2
  if (level <= 2) {
    CATENA_FILL(v2);
    return tables;
  }
#endif
#ifdef CATENA_HAVE_ISA_v3
  CATENA_FILL(v3);
#endif
  return tables;
}

}  // namespace

const Tables& tables() {
  static const Tables instance = make_tables();
  return instance;
}

}  // namespace catena::host
