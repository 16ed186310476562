#include "catena/kernels/pooling.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(max_pooling)
CATENA_DEFINE_SLOT(max_pooling_grad)
CATENA_DEFINE_SLOT(max_pooling_pick)

}  // namespace catena::kernels
