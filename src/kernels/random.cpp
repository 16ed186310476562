#include "catena/kernels/random.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(random)
CATENA_DEFINE_SLOT(permutation)
CATENA_DEFINE_SLOT(dropout)

}  // namespace catena::kernels
