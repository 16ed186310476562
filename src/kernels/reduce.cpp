#include "catena/kernels/reduce.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(reduce)
CATENA_DEFINE_SLOT(arg_reduce)

}  // namespace catena::kernels
