#include "catena/kernels/index.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(take)
CATENA_DEFINE_SLOT(scatter_add)
CATENA_DEFINE_SLOT(gather)
CATENA_DEFINE_SLOT(scatter)

}  // namespace catena::kernels
