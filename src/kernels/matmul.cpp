#include "catena/kernels/matmul.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(matmul)

}  // namespace catena::kernels
