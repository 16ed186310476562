// Elementary functions of double, relu of integers. See loop.h.
#define CATENA_TABLE "catena/kernels/detail/elementwise_math.def"
#include "backends/cpu/loops/fill_rows.h"

namespace catena::host::CATENA_ISA {

CATENA_LOOPS(math_float64) {
  fill_rows<double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(
      tables.loops + kFirstMath);
}

}  // namespace catena::host::CATENA_ISA
