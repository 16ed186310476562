#include "catena/kernels/prelu.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(prelu_grad)

}  // namespace catena::kernels
