// Arithmetic of floats. See loop.h.
#define CATENA_TABLE "catena/kernels/detail/elementwise_arithmetic.def"
#include "backends/cpu/loops/fill_rows.h"

namespace catena::host::CATENA_ISA {

CATENA_LOOPS(arithmetic_float) { fill_rows<float, double>(tables.loops + kFirstArithmetic); }

}  // namespace catena::host::CATENA_ISA
