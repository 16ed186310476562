#include "catena/kernels/sort.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(sort)
CATENA_DEFINE_SLOT(order_statistics)
CATENA_DEFINE_SLOT(searchsorted)
CATENA_DEFINE_SLOT(run_starts)

}  // namespace catena::kernels
