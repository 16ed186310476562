// Table of the inner loops of row normalization for numbers of 16 bits, which are read and written
// where they are, without a copy in float. Compiled once for each x86-64 level; see tables.h for
// what it may include.
#pragma once

#include <cstdint>

#include "backends/cpu/loops/levels.h"

namespace catena::host {

// Of one storage type. Pieces, and the indices 0 and 1, are those of NormalizationLoops
// (normalization.h), and so are the results.
struct HalfNormalizationLoops {
  struct Moments {
    double *mean, *rest, *squares;
  };
  void (*moments[2])(const void* x, int64_t rows, int64_t columns, const Moments& to);
  // y = (x - mean) * scale + shift. y may be x.
  struct Apply {
    const void* x;
    const float *mean, *scale, *shift;
    void* y;
  };
  void (*apply[2])(const Apply& a, int64_t rows, int64_t columns);
  // The sums of gy and gy * (x - mean).
  struct Sums {
    const void *x, *gy;
    const float* mean;
    double *g, *gx;
  };
  void (*sums[2])(const Sums& s, int64_t rows, int64_t columns);
  // gx = of_g * gy + of_x * (x - mean) + constant.
  struct Gradient {
    const void *x, *gy;
    const float *mean, *of_g, *of_x, *constant;
    void* gx;
  };
  void (*gradient[2])(const Gradient& g, int64_t rows, int64_t columns);
};

struct HalfNormalizationTables {
  HalfNormalizationLoops of_half, of_brain;
};
CATENA_DECLARE_LOOPS(HalfNormalizationTables)

}  // namespace catena::host
