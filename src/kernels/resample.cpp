#include "catena/kernels/resample.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(resample)

}  // namespace catena::kernels
