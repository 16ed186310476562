#include "catena/kernels/extreme.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(extreme_grad)

}  // namespace catena::kernels
