// Comparisons, logic and bits. See loop.h.
#define CATENA_TABLE "catena/kernels/detail/elementwise_logic.def"
#include "backends/cpu/loops/fill_rows.h"

namespace catena::host::CATENA_ISA {

CATENA_LOOPS(logic) {
  fill_rows<bool, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, float,
            double>(tables.loops + kFirstLogic);
}

}  // namespace catena::host::CATENA_ISA
