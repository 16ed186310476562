#include "catena/kernels/ctc.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(ctc)
CATENA_DEFINE_SLOT(ctc_grad)

}  // namespace catena::kernels
