#include "catena/kernels/row_normalization.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(row_normalization)
CATENA_DEFINE_SLOT(row_normalization_grad)

}  // namespace catena::kernels
