// Sorting and searching.
#pragma once

#include <cstdint>
#include <vector>

#include "catena/kernels/slot.h"

namespace catena {

class Array;

// The first elements of every row of `input`, contiguous (rows, n) and not empty, in ascending
// order (NaN last, -0 equal to 0) or in descending order (NaN first). Outputs are contiguous (rows,
// keep) with 1 <= keep <= n: the elements, and their int64 positions in the row. At least one is
// given. With positions the order is stable (also the descending one); without them -0 and 0 may
// change places.
struct SortCall {
  const Array* input;
  bool descending;
  const Array* values;     // or null
  const Array* positions;  // or null
};

// output[r, j] = element number ranks[j] of row r of `input` in ascending order. input contiguous
// (rows, n), not empty; ranks ascending without repetition; output contiguous (rows, ranks).
struct OrderStatisticsCall {
  const Array& input;
  const std::vector<int64_t>& ranks;
  const Array& output;
};

// Number of elements of `sorted` (1-d, ascending) before each value: those less than it, or with
// `right` those not greater. sorted and values contiguous of one dtype, output contiguous int64.
struct SearchSortedCall {
  const Array& sorted;
  const Array& values;
  bool right;
  const Array& output;
};

// output[i] = i is 0 or sorted[i] is another value than sorted[i - 1] (NaNs are one value).
// Contiguous 1-d, not empty; output bool.
struct RunStartsCall {
  const Array& sorted;
  const Array& output;
};

namespace kernels {

// The slots of the calls above.
extern Slot<SortCall> sort;
extern Slot<OrderStatisticsCall> order_statistics;
extern Slot<SearchSortedCall> searchsorted;
extern Slot<RunStartsCall> run_starts;

}  // namespace kernels

}  // namespace catena
