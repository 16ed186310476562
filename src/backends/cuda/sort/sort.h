// Sorting, and searching in sorted arrays: plain arguments. catena/kernels/sort.h defines the
// results.
#pragma once

#include "backends/cuda/runtime/element.h"
#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

// Orders are those of the elements' dtypes; bool counts as kUInt8.

// `count` elements in ascending order.
struct SortKeysArgs {
  const void* input;
  void* output;
  int64_t count;
  void* scratch;
  size_t scratch_bytes;
};
size_t sort_keys_scratch_bytes(Element order, int64_t count);
cudaError_t launch_sort_keys(Element order, const SortKeysArgs& args, const Launch& launch);

// The first `keep` of each row in stable order.
struct SortPairsArgs {
  const void* input;
  int bytes;  // of an element
  int64_t rows, columns, keep;
  bool descending;
  void* values;        // or null
  int64_t* positions;  // or null
  void* scratch;
  size_t scratch_bytes;
};
// Rows of at most kShortRow columns; needs no scratch memory.
constexpr int64_t kShortRow = 2048;
void launch_sort_short(Element order, const SortPairsArgs& args, const Launch& launch);

size_t sort_pairs_scratch_bytes(int bytes, int64_t rows, int64_t columns);
cudaError_t launch_sort_pairs(Element order, const SortPairsArgs& args, const Launch& launch);

struct SearchArgs {
  const void* sorted;
  int64_t length;
  const void* values;
  int64_t count;
  bool right;
  int64_t* output;
};
void launch_search(Element order, const SearchArgs& args, const Launch& launch);

// starts[i]: element i differs from the one before.
void launch_run_starts(Element order, const void* sorted, int64_t count, bool* starts,
                       const Launch& launch);

// output[r, j] = table[r, ranks[j]] of (rows, columns): elements of any dtype of `bytes` bytes. At
// most kMaxRanks at a time.
constexpr int kMaxRanks = 32;
struct PickArgs {
  const void* table;
  void* output;
  int64_t rows, columns, output_columns;
  int ranks;
  int64_t rank[kMaxRanks];
};
void launch_pick(int bytes, const PickArgs& args, const Launch& launch);

}  // namespace catena::gpu
