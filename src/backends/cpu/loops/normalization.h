// Table of the inner loops of batch normalization, compiled once for each x86-64 level. It is not
// part of tables.h, so that a change here does not recompile all other loops. See there for what it
// may include.
#pragma once

#include <cstdint>

#include "backends/cpu/loops/levels.h"

namespace catena::host {

// A piece of a batch is `rows` contiguous rows of `columns` elements. Either all elements of a
// piece are of one channel (index 0 below), or column j is of channel j (index 1). Constants and
// results are one number for each channel, from the piece's first channel on.
template <class T>
struct NormalizationLoops {
  // Mean, as the sum of mean and rest, and sum of squared deviations, for pieces of at most
  // kLongestPiece rows, or as many elements if they are of one channel.
  struct Moments {
    double *mean, *rest, *squares;
  };
  void (*moments[2])(const T* x, int64_t rows, int64_t columns, const Moments& to);
  // Joins to the moments of n_to > 0 numbers in each of `channels` channels those of n_from others.
  void (*merge)(const Moments& to, double n_to, const Moments& from, double n_from,
                int64_t channels);
  // y = (x - mean) * scale + shift (+ residual), then relu on request. `residual` may be null.
  struct Apply {
    const T *x, *residual, *mean, *scale, *shift;
    bool relu;
    T* y;
  };
  void (*apply[2])(const Apply& a, int64_t rows, int64_t columns);
  // With g = gy, or 0 where y is not positive (y may be null): the sums of g and g * (x - mean).
  struct Sums {
    const T *x, *gy, *y, *mean;
    double *g, *gx;
  };
  void (*sums[2])(const Sums& s, int64_t rows, int64_t columns);
  // gx = of_g * g + of_x * (x - mean) + constant, and `masked` = g unless it is null.
  struct Gradient {
    const T *x, *gy, *y, *mean, *of_g, *of_x, *constant;
    T *gx, *masked;
  };
  void (*gradient[2])(const Gradient& g, int64_t rows, int64_t columns);
};
inline constexpr int64_t kLongestPiece = 1024;

using NormalizationTables = LoopsByType<NormalizationLoops>;
CATENA_DECLARE_LOOPS(NormalizationTables)

}  // namespace catena::host
