#include "catena/kernels/elementwise.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(elementwise)
CATENA_DEFINE_SLOT(fused)

}  // namespace catena::kernels
