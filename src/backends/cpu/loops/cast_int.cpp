// Casts from bool and integers. See cast.h.
#include "backends/cpu/loops/cast.h"

namespace catena::host::CATENA_ISA {

CATENA_LOOPS(cast_int) {
  fill_casts_from<Truth>(tables, 0);
  fill_casts_from<int8_t>(tables, 1);
  fill_casts_from<int16_t>(tables, 2);
  fill_casts_from<int32_t>(tables, 3);
  fill_casts_from<int64_t>(tables, 4);
  fill_casts_from<uint8_t>(tables, 5);
  fill_casts_from<uint16_t>(tables, 6);
  fill_casts_from<uint32_t>(tables, 7);
  fill_casts_from<uint64_t>(tables, 8);
}

}  // namespace catena::host::CATENA_ISA
