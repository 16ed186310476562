// Chooses the loop tables that fit this processor, once.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "backends/cpu/loops/tables.h"
#include "catena/core/dtype.h"
#include "catena/core/log.h"

// What `catena-run --check` shows of the CPU kernels (src/comm/installation.h); *best is 0 if this
// processor could run faster ones.
extern "C" __attribute__((visibility("default"))) const char* catena_check_cpu(int* best);

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
    level::fill_products(tables);         \
    level::fill_sort(tables);             \
    tables.isa = "x86-64-" #level;        \
  } while (false)

// Builds without every level (sanitizers) have one that is then required.
int level_of_processor() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("x86-64-v4") ? 4 : __builtin_cpu_supports("x86-64-v3") ? 3 : 2;
}
int best_level() { return level_of_kernels(level_of_processor(), std::getenv("CATENA_CPU_ISA")); }

#if defined(CATENA_HAVE_ISA_v4) && defined(CATENA_HAVE_ISA_v3)
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
  const int level = best_level();
  if (level < level_of_processor())
    logging::warning("CATENA_CPU_ISA=", std::getenv("CATENA_CPU_ISA"),
                     " keeps the CPU kernels at x86-64-v", level, "; this processor has x86-64-v",
                     level_of_processor(), ", which is faster: unset it");
#ifdef CATENA_HAVE_ISA_v4
  if (level >= 4) {
    CATENA_FILL(v4);
#ifdef CATENA_HAVE_ISA_v3
    use_narrower_vectors(tables);
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

int level_of_kernels(int processor, const char* wish) {
  const int limit = wish != nullptr && wish[0] == 'v' ? std::atoi(wish + 1) : 4;
  return std::max(2, std::min(processor, limit));
}

const Tables& tables() {
  static const Tables instance = make_tables();
  return instance;
}

}  // namespace catena::host

const char* catena_check_cpu(int* best) {
  static std::string text;
  const int processor = catena::host::level_of_processor();
  text = catena::host::tables().isa;
  *best = catena::host::best_level() == processor;
  if (!*best)
    text += " by CATENA_CPU_ISA, though this processor has x86-64-v" + std::to_string(processor) +
            "; unset the variable";
  return text.c_str();
}
