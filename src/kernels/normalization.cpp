#include "catena/kernels/normalization.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(batch_normalization)
CATENA_DEFINE_SLOT(fixed_batch_normalization)
CATENA_DEFINE_SLOT(batch_normalization_grad)
CATENA_DEFINE_SLOT(batch_moments)
CATENA_DEFINE_SLOT(merge_moments)

}  // namespace catena::kernels
