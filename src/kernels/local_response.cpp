#include "catena/kernels/local_response.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(local_response)
CATENA_DEFINE_SLOT(local_response_grad)

}  // namespace catena::kernels
