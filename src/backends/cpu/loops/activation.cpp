// Activations. See loop.h.
#define CATENA_TABLE "catena/kernels/detail/elementwise_activation.def"
#include "backends/cpu/loops/fill_rows.h"

namespace catena::host::CATENA_ISA {

CATENA_LOOPS(activation) { fill_rows<float, double>(tables.loops + kFirstActivation); }

}  // namespace catena::host::CATENA_ISA
