#include "catena/kernels/count.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(nonzero_count)
CATENA_DEFINE_SLOT(nonzero)
CATENA_DEFINE_SLOT(bincount)
CATENA_DEFINE_SLOT(histogram)

}  // namespace catena::kernels
