// Casts from floats. See cast.h.
#include "backends/cpu/loops/cast.h"

namespace catena::host::CATENA_ISA {

CATENA_LOOPS(cast_float) {
  fill_casts_from<Half>(tables, 9);
  fill_casts_from<Brain>(tables, 10);
  fill_casts_from<float>(tables, 11);
  fill_casts_from<double>(tables, 12);
}

}  // namespace catena::host::CATENA_ISA
