// Sorting, and searching in sorted arrays: plain arguments. catena/kernels/sort.h defines the
// results.
#pragma once

#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

// How the elements of a dtype are ordered; bool counts as kU8.
enum class Order : uint8_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kU64,
  kI64,
  kF16,
  kBf16,
  kF32,
  kF64
};
constexpr int order_bytes(Order order) {
  constexpr int bytes[] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
  return bytes[int(order)];
}

// `count` elements in ascending order.
struct SortKeysArgs {
  const void* input;
  void* output;
  int64_t count;
  void* scratch;
  size_t scratch_bytes;
};
size_t sort_keys_scratch_bytes(Order order, int64_t count);
cudaError_t launch_sort_keys(Order order, const SortKeysArgs& args, const Launch& launch);

// The first `keep` of each row in stable order.
struct SortPairsArgs {
  const void* input;
  int64_t rows, columns, keep;
  bool descending;
  void* values;        // or null
  int64_t* positions;  // or null
  void* scratch;
  size_t scratch_bytes;
};
// Rows of at most kShortRow columns; needs no scratch memory.
constexpr int64_t kShortRow = 2048;
void launch_sort_short(Order order, const SortPairsArgs& args, const Launch& launch);

size_t sort_pairs_scratch_bytes(Order order, int64_t rows, int64_t columns);
cudaError_t launch_sort_pairs(Order order, const SortPairsArgs& args, const Launch& launch);

struct SearchArgs {
  const void* sorted;
  int64_t length;
  const void* values;
  int64_t count;
  bool right;
  int64_t* output;
};
void launch_search(Order order, const SearchArgs& args, const Launch& launch);

// starts[i]: element i differs from the one before.
void launch_run_starts(Order order, const void* sorted, int64_t count, bool* starts,
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
