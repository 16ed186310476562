// Chooses the loop tables that fit this processor, once.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/loops/levels.h"
#include "backends/cpu/loops/tables.h"
#include "catena/core/dtype.h"
#include "catena/core/error.h"
#include "catena/core/log.h"

// What `catena-run --check` shows of the CPU kernels (src/comm/installation.h); *best is 0 if this
// processor could run faster ones.
extern "C" __attribute__((visibility("default"))) const char* catena_check_cpu(int* best);

namespace catena::host {

// Each loop file's part of the tables, of one level. Of some levels a build has a few parts only.
#define CATENA_ITEM(part) void fill_##part(Tables& tables);
namespace v2 {
#include "lists/cpu_loops.inc"
}
namespace v3 {
#include "lists/cpu_loops.inc"
}
namespace v4 {
#include "lists/cpu_loops.inc"
}
#undef CATENA_ITEM

namespace {

#ifdef CATENA_HAVE_ISA_v2
void fill_v2(Tables& tables) {
  using namespace v2;
#define CATENA_ITEM(part) fill_##part(tables);
#include "lists/cpu_loops.inc"
#undef CATENA_ITEM
  tables.isa = "x86-64-v2";
}
#endif
#ifdef CATENA_HAVE_ISA_v3
void fill_v3(Tables& tables) {
  using namespace v3;
#define CATENA_ITEM(part) fill_##part(tables);
#include "lists/cpu_loops.inc"
#undef CATENA_ITEM
  tables.isa = "x86-64-v3";
}
#endif
#ifdef CATENA_HAVE_ISA_v4
void fill_v4(Tables& tables) {
  using namespace v4;
#define CATENA_ITEM(part) fill_##part(tables);
#include "lists/cpu_loops.inc"
#undef CATENA_ITEM
  tables.isa = "x86-64-v4";
}
#endif

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
// (docs/decisions.md, "Loops on the CPU"). The results are the same bits.
void use_narrower_vectors(Tables& tables) {
  static Tables narrower;
#define CATENA_ITEM(part) v3::fill_##part(narrower);
#include "lists/cpu_streaming_loops.inc"
#undef CATENA_ITEM
  for (int op = 0; op < kElementwiseRows; ++op)
    for (int dtype = 0; dtype < kDtypes; ++dtype)
      if (LoopEntry& entry = tables.loops[op][dtype]; !entry.heavy)
        entry.streaming = narrower.loops[op][dtype].loop;
  for (int from = 0; from < kDtypes; ++from)
    for (int to = 0; to < kDtypes; ++to)
      if (!is_narrow_float(Dtype(from)) && !is_narrow_float(Dtype(to)))
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

// Elements of every dtype move as words of their size.
void use_moves(Tables& tables) {
  constexpr int kWords[] = {kUInt8Index, kUInt16Index, kUInt32Index, kUInt64Index};
  for (int d = 0; d < kDtypes; ++d) {
    const int word = kWords[std::countr_zero(itemsize(Dtype(d)))];
    tables.casts[d][d] = tables.casts[word][word];
  }
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
    case 4: fill_v4(tables);
#ifdef CATENA_HAVE_STREAMING_v3
      use_narrower_vectors(tables);
#endif
      break;
#endif
#ifdef CATENA_HAVE_ISA_v3
    case 3: fill_v3(tables); break;
#endif
#ifdef CATENA_HAVE_ISA_v2
    case 2: fill_v2(tables); break;
#endif
  }
  use_older_products(tables);
  use_moves(tables);
  return tables;
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

int level_of_tables() {
  tables();  // fails if there is no level
  return best_level();
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
