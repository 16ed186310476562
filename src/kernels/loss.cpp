#include "catena/kernels/loss.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(softmax_cross_entropy)
CATENA_DEFINE_SLOT(softmax_cross_entropy_grad)
CATENA_DEFINE_SLOT(softmax_cross_entropy_in_place)
CATENA_DEFINE_SLOT(scale_samples)
CATENA_DEFINE_SLOT(accuracy)

}  // namespace catena::kernels
