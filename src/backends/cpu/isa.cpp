// Chooses the loop tables that fit this processor, once.
#include <cstdlib>
#include <cstring>

#include "backends/cpu/loops/tables.h"
#include "catena/core/dtype.h"
#include "catena/core/error.h"

namespace catena::host {

namespace {

#define CATENA_FILL(level)                \
  do {                                    \
    level::fill_arithmetic_int(tables);   \
    level::fill_arithmetic_float(tables); \
    level::fill_arithmetic_half(tables);  \
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
    level::fill_sort(tables);             \
    tables.isa = "x86-64-" #level;        \
  } while (false)

// The levels of this build, in ascending order.
constexpr int kLevels[] = {
#ifdef CATENA_HAVE_ISA_v2
    2,
#endif
#ifdef CATENA_HAVE_ISA_v3
    3,
#endif
#ifdef CATENA_HAVE_ISA_v4
    4,
#endif
};

// The best level that both this processor and the build have. Every processor that has one runs
// those below it. CATENA_CPU_ISA ("v2", "v3", "v4": for comparisons) chooses among them only.
int best_level() {
  __builtin_cpu_init();
  const int processor = __builtin_cpu_supports("x86-64-v4")   ? 4
                        : __builtin_cpu_supports("x86-64-v3") ? 3
                                                              : 2;
  const char* wish = std::getenv("CATENA_CPU_ISA");
  const int limit = wish != nullptr && wish[0] == 'v' ? std::atoi(wish + 1) : 4;
  int best = 0, least = 0;
  for (const int level : kLevels) {
    if (level > processor) continue;
    if (least == 0) least = level;
    if (level <= limit) best = level;
  }
  CATENA_CHECK(DeviceError, least != 0,
               "the CPU loops of this build are for processors of x86-64-v", kLevels[0],
               " and later, this one is x86-64-v", processor,
               ": catena was built on another machine; build it on this one, or for all processors "
               "with -DCATENA_CPU_ISA=all");
  return best != 0 ? best : least;
}

#ifdef CATENA_HAVE_STREAMING_v3
// Vectors of 256 bits where memory is the limit: they pass large operands on faster than those of
// 512 (docs/decisions.md). The results are the same bits.
void use_narrower_vectors(Tables& tables) {
  static Tables narrower;
  v3::fill_arithmetic_int(narrower);
  v3::fill_arithmetic_float(narrower);
  v3::fill_logic(narrower);
  v3::fill_cast_int(narrower);
  v3::fill_cast_float(narrower);
  v3::fill_reduce(narrower);
  for (int op = 0; op < kOpRows; ++op)
    for (int dtype = 0; dtype < kDtypes; ++dtype)
      if (LoopEntry& entry = tables.loops[op][dtype]; !entry.heavy)
        entry.streaming = narrower.loops[op][dtype].loop;
  const auto is_16_bit_float = [](int dtype) {
    return Dtype(dtype) == Dtype::kFloat16 || Dtype(dtype) == Dtype::kBFloat16;
  };
  for (int from = 0; from < kDtypes; ++from)
    for (int to = 0; to < kDtypes; ++to)
      if (!is_16_bit_float(from) && !is_16_bit_float(to))
        tables.casts[from][to] = narrower.casts[from][to];
  for (int op = 0; op < kReduceLoops; ++op)
    for (int dtype = 0; dtype < kDtypes; ++dtype)
      tables.reductions[op][dtype].columns = narrower.reductions[op][dtype].columns;
}
#endif

Tables make_tables() {
  Tables tables{};
  switch (best_level()) {
#ifdef CATENA_HAVE_ISA_v4
    case 4:
      CATENA_FILL(v4);
#ifdef CATENA_HAVE_STREAMING_v3
      use_narrower_vectors(tables);
#endif
      break;
#endif
#ifdef CATENA_HAVE_ISA_v3
    case 3:
      CATENA_FILL(v3);
      break;
#endif
#ifdef CATENA_HAVE_ISA_v2
    case 2:
      CATENA_FILL(v2);
      break;
#endif
  }
  return tables;
}

}  // namespace

const Tables& tables() {
  static const Tables instance = make_tables();
  return instance;
}

}  // namespace catena::host
