#include "catena/kernels/convolution.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(convolution)
CATENA_DEFINE_SLOT(convolution_grad_x)
CATENA_DEFINE_SLOT(convolution_grad_w)
CATENA_DEFINE_SLOT(patches)
CATENA_DEFINE_SLOT(patch_sums)

}  // namespace catena::kernels
