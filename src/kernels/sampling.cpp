#include "catena/kernels/sampling.h"

#include "kernels/define_slot.h"

namespace catena::kernels {

CATENA_DEFINE_SLOT(alias_sample)
CATENA_DEFINE_SLOT(sampled_logistic)
CATENA_DEFINE_SLOT(sampled_logistic_grad)

}  // namespace catena::kernels
