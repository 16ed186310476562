// Casts from floats. See cast.h.
#include "backends/cpu/loops/cast.h"

namespace catena::host::CATENA_ISA {

CATENA_LOOPS(cast_float) {
  fill_casts_from<Half>(tables, kFloat16Index);
  fill_casts_from<Brain>(tables, kBFloat16Index);
  fill_casts_from<float>(tables, kFloat32Index);
  fill_casts_from<double>(tables, kFloat64Index);
}

}  // namespace catena::host::CATENA_ISA
