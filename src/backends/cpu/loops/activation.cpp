// Activations. See loop.h.
#define CATENA_TABLE "catena/kernels/detail/elementwise_activation.def"
#include "backends/cpu/loops/fill_rows.h"
#include "backends/cpu/loops/gelu.h"

namespace catena::host::CATENA_ISA {

CATENA_LOOPS(activation) {
  fill_rows<float, double>(tables.loops + kFirstActivation);
  for_each_row(tables.loops + kFirstActivation, OwnForms());
}

}  // namespace catena::host::CATENA_ISA
