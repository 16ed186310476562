#include "catena/kernels/copy.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(copy)
CATENA_DEFINE_SLOT(fill)
CATENA_DEFINE_SLOT(arange)
CATENA_DEFINE_SLOT(concatenate)

}  // namespace catena::kernels
