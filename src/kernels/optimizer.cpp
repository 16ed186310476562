#include "catena/kernels/optimizer.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(sgd)
CATENA_DEFINE_SLOT(momentum_sgd)
CATENA_DEFINE_SLOT(adam)

}  // namespace catena::kernels
