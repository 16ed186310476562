// Table of the inner loops of resampling, compiled once for each x86-64 level. See pooling.h.
#pragma once

#include <cstdint>

#include "backends/cpu/loops/levels.h"

namespace catena::host {

// Of one storage type; sums and weights are of the type in which it computes. All steps are in
// elements. Null weights: all are one.
struct ResampleLoops {
  // One element of y with all of its channels side by side: the sum over count[0] rows and count[1]
  // columns of x, divided by `divisor`.
  struct Position {
    const void* x;
    void* y;
    int64_t channels, count[2], step[2];
    const void* weights[2];
    double divisor;
    bool accumulate;
  };
  void (*sum_of_position)(const Position& p);

  // A row of y with channels first: the sum over `rows` rows of x, of `width` elements, into
  // `sums`, and over the columns [begin[i], end[i]) of that, whose weights begin at number
  // first[i].
  struct Row {
    const void* x;
    void *y, *sums;  // sums: width + 1 elements
    int64_t rows, width, positions;
    const void* row_weights;
    const int64_t *begin, *end, *first;
    const void* column_weights;
    double divisor;
    bool mean;  // divides by the number of columns, too
    bool accumulate;
    // The same columns for vectors of positions, where taps > 0: tap t of position i is the column
    // tap_columns[t * tap_step + i], `width` where there is none; likewise tap_weights, null where
    // all are one. counts[i]: the number of columns; null unless `mean`.
    int64_t taps, tap_step;
    const int32_t* tap_columns;
    const void *tap_weights, *counts;
    // Where the columns are those of a window: positions [whole[0], whole[1]) see all of it, from
    // column position * stride - pad on.
    int64_t kernel, stride, pad, whole[2];
  };
  void (*sum_of_row)(const Row& r);

  // Planes, one after the other: each of the n elements of plane p of y (+)= x[p] / divisor.
  struct Planes {
    const void* x;
    void* y;
    int64_t planes, n;
    double divisor;
    bool accumulate;
  };
  void (*spread_to_planes)(const Planes& p);
};

using ResampleTables = LoopsOfFloats<ResampleLoops>;
CATENA_DECLARE_LOOPS(ResampleTables)

}  // namespace catena::host
