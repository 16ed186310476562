#include "catena/kernels/softmax.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(softmax)
CATENA_DEFINE_SLOT(softmax_grad)

}  // namespace catena::kernels
