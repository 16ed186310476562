// Counting elements and finding those that are not zero.
#pragma once

#include "catena/kernels/slot.h"

namespace catena {

class Array;

// count: 0-d int64 number of elements of a contiguous array that are not zero.
struct NonzeroCountCall {
  const Array& input;
  const Array& count;
};

// Their positions in C order: column j of the contiguous int64 output (max(ndim, 1), count) is that
// of number j, which are exactly `count` >= 1; for a 0-d or 1-d array the position itself.
struct NonzeroCall {
  const Array& input;
  const Array& positions;
};

// counts[v] = number of elements v of a contiguous array of integers or bool, all of them of [0,
// counts->size()); counts contiguous int64, not empty.
struct BincountCall {
  const Array& input;
  const Array& counts;
};

// counts[i] = number of elements x with edges[i] <= x < edges[i + 1], in the last bin <=. All
// contiguous; input and edges (counts->size() + 1 of them, ascending) of one dtype of float32,
// float64, int64, uint64; counts int64, not empty. `uniform`: the edges are evenly spaced up to
// rounding, first < last.
struct HistogramCall {
  const Array* input;
  const Array* edges;
  bool uniform;
  const Array* counts;
};

namespace kernels {

// The slots of the calls above.
extern Slot<NonzeroCountCall> nonzero_count;
extern Slot<NonzeroCall> nonzero;
extern Slot<BincountCall> bincount;
extern Slot<HistogramCall> histogram;

}  // namespace kernels

}  // namespace catena
