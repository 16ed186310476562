// Gradients. See loop.h.
#define CATENA_TABLE "catena/kernels/detail/elementwise_gradient.def"
#include "backends/cpu/loops/fill_rows.h"

namespace catena::host::CATENA_ISA {

CATENA_LOOPS(gradient) { fill_rows<float, double>(tables.loops + kFirstGradient); }

}  // namespace catena::host::CATENA_ISA
