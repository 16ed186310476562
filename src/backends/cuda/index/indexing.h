// Gather and scatter along the middle axis of (outer, extent, inner): plain arguments.
#pragma once

#include "backends/cuda/runtime/element.h"
#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

// Negative positions count from the end. Positions that are still out of range are clipped or wrap
// around. Strict ones do neither: see IdRule.
struct Positions {
  const void* data;
  bool wide;  // int64, else int32
  bool clip;
  bool strict, ignores;  // ignores: there is an ignored id
  int64_t ignored;
  int64_t count;
};

struct TakeArgs {
  const void* source;
  void* output;
  Positions positions;
  int64_t outer, extent;
  int64_t slice_bytes;  // of one position
  int unit;             // 16, 8, 4, 2 or 1 bytes: divides the slice and the addresses
};

void launch_take(const TakeArgs& args, const Launch& launch);

// Element types of a scattering addition: those of target and values are equal, or the target is
// float32 and the values are 16-bit floats.
struct ScatterTypes {
  Element target, values;
  bool widens() const { return target != values; }
};

struct ScatterArgs {
  void* target;
  const void* values;
  Positions positions;
  int64_t outer, extent, inner;
  // Null, or the positions in [0, extent) in ascending order, equal ones in the order of the list,
  // and the index of each one in the list. Those that are left out come last, as `extent`.
  const void* sorted;
  const int64_t* numbers;
};
// Element type of `sorted`: int64 if wide, else uint32.
constexpr bool sorted_positions_are_wide(int64_t extent) { return extent >= int64_t(1) << 32; }

// With `ordered`, repeated positions are added in their order, which gives the same bits every
// time. Otherwise additions are atomic, where values of the type have atomic additions.
void launch_scatter_add(const ScatterTypes& types, bool ordered, const ScatterArgs& args,
                        const Launch& launch);

// Whether to give the call `sorted`. Without it an ordered addition scans all positions for each
// target element.
bool scatter_wants_sorted(const ScatterTypes& types, bool ordered, const ScatterArgs& args);
// places[i] = positions[i] counted from 0, in the type of `sorted`.
void launch_resolve_positions(const Positions& positions, int64_t extent, void* places,
                              const Launch& launch);

// Adds in any order, with each row of the target written once: for outer = 1, floats, fewer than
// 2^31 rows and positions, and slices of values that 16-byte packs divide; values are at addresses
// that these packs divide, the target at those that as many of its own numbers do. Without
// `accumulate` the target is not read. `scratch`: row_list_words() numbers.
int64_t row_list_words(const ScatterArgs& args);
void launch_scatter_rows(const ScatterTypes& types, bool accumulate, const ScatterArgs& args,
                         uint32_t* scratch, const Launch& launch);

}  // namespace catena::gpu
