#include "catena/kernels/scan.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(scan)

}  // namespace catena::kernels
