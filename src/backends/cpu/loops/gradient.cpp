// Gradients. See loop.h.
#define CATENA_TABLE "catena/kernels/detail/elementwise_gradient.def"
#include "backends/cpu/loops/fill_rows.h"
#include "backends/cpu/loops/gelu.h"

namespace catena::host::CATENA_ISA {

CATENA_LOOPS(gradient) {
  fill_rows<float, double>(tables.loops + kFirstGradient);
  for_each_row(tables.loops + kFirstGradient, OwnForms());
}

}  // namespace catena::host::CATENA_ISA
