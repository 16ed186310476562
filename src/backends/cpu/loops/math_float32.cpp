// Elementary functions of float. See loop.h.
#define CATENA_TABLE "catena/kernels/detail/elementwise_math.def"
#include "backends/cpu/loops/fill_rows.h"

namespace catena::host::CATENA_ISA {

CATENA_LOOPS(math_float32) { fill_rows<float>(tables.loops + kFirstMath); }

}  // namespace catena::host::CATENA_ISA
