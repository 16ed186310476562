// Chooses the loop tables that fit this processor, once.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/loops/normalization.h"
#include "backends/cpu/loops/tables.h"
#include "catena/core/dtype.h"
#include "catena/core/error.h"
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

// The levels of this build, in ascending order.
const std::vector<int> kLevels = {
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

int level_of_processor() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("x86-64-v4") ? 4 : __builtin_cpu_supports("x86-64-v3") ? 3 : 2;
}
int best_level() {
  return level_of_kernels(level_of_processor(), std::getenv("CATENA_CPU_ISA"), kLevels);
}

#ifdef CATENA_HAVE_STREAMING_v3
// Where memory is the limit, vectors of 256 bits are faster on large operands than vectors of 512
// (docs/decisions.md). The results are the same bits.
void use_narrower_vectors(Tables& tables) {
  static Tables narrower;
  v3::fill_arithmetic_int(narrower);
  v3::fill_arithmetic_float(narrower);
  v3::fill_logic(narrower);
  v3::fill_cast_int(narrower);
  v3::fill_cast_float(narrower);
  v3::fill_reduce(narrower);
  for (int op = 0; op < kElementwiseRows; ++op)
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

// Native builds with tests also have the products of older processors, so that CATENA_CPU_ISA can
// choose them.
void use_older_products([[maybe_unused]] Tables& tables) {
#ifdef CATENA_HAVE_OLDER_PRODUCTS
  const std::vector<int> levels = {2, 3, 4};
  const int wish = level_of_kernels(level_of_processor(), std::getenv("CATENA_CPU_ISA"), levels);
  if (wish == 3) v3::fill_products(tables);
  if (wish == 2) v2::fill_products(tables);
#endif
}

void warn_of_wish() {
  const char* text = std::getenv("CATENA_CPU_ISA");
  const std::string_view wish = text ? text : "";
  const bool known = wish.size() == 2 && wish[0] == 'v' && wish[1] >= '1' && wish[1] <= '4';
  if (!known && !wish.empty())
    logging::warning("CATENA_CPU_ISA=", wish, " is none of v2, v3, v4; it is ignored");
}

Tables make_tables() {
  Tables tables{};
  const int level = best_level(),
            possible = level_of_kernels(level_of_processor(), nullptr, kLevels);
  CATENA_CHECK(DeviceError, level != 0, "the CPU kernels of this build need x86-64-v",
               kLevels.front(), ", this processor has x86-64-v", level_of_processor(),
               ": catena was built for other machines; build it on this one, or for all processors "
               "with -DCATENA_CPU_ISA=all");
  warn_of_wish();
  if (level < possible)
    logging::warning("CATENA_CPU_ISA=", std::getenv("CATENA_CPU_ISA"),
                     " keeps the CPU kernels at x86-64-v", level, "; this processor has x86-64-v",
                     level_of_processor(), ", which is faster: unset it");
  switch (level) {
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
  use_older_products(tables);
  return tables;
}

// Follows the level of tables(), which fails if this build has none for the processor.
NormalizationTables make_normalization_tables() {
  NormalizationTables made{};
  tables();
  switch (best_level()) {
#ifdef CATENA_HAVE_ISA_v4
    case 4:
      v4::fill_normalization(made);
      break;
#endif
#ifdef CATENA_HAVE_ISA_v3
    case 3:
      v3::fill_normalization(made);
      break;
#endif
#ifdef CATENA_HAVE_ISA_v2
    case 2:
      v2::fill_normalization(made);
      break;
#endif
  }
  return made;
}

}  // namespace

int level_of_kernels(int processor, const char* wish, const std::vector<int>& built) {
  const int limit = wish != nullptr && wish[0] == 'v' ? std::atoi(wish + 1) : 4;
  int best = 0, least = 0;
  for (const int level : built) {
    if (level > processor) continue;
    if (least == 0) least = level;
    if (level <= limit) best = level;
  }
  return best != 0 ? best : least;
}

const Tables& tables() {
  static const Tables instance = make_tables();
  return instance;
}

const NormalizationTables& normalization_tables() {
  static const NormalizationTables instance = make_normalization_tables();
  return instance;
}

}  // namespace catena::host

const char* catena_check_cpu(int* best) {
  static std::string text;
  const int processor = catena::host::level_of_processor();
  text = catena::host::tables().isa;
  *best = catena::host::best_level() ==
          catena::host::level_of_kernels(processor, nullptr, catena::host::kLevels);
  if (!*best)
    text += " by CATENA_CPU_ISA, though this processor has x86-64-v" + std::to_string(processor) +
            "; unset the variable";
  return text.c_str();
}
