#include "catena/kernels/normalization.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(batch_normalization)
CATENA_DEFINE_SLOT(fixed_batch_normalization)
CATENA_DEFINE_SLOT(batch_normalization_grad)

}  // namespace catena::kernels
