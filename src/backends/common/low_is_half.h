// Dtype of the narrow copies that a step of an optimizer writes beside its parameters.
#pragma once

#include "catena/array/array.h"
#include "catena/kernels/optimizer.h"

namespace catena {

// Whether they are float16, and not bfloat16 or absent; DtypeError for others.
inline bool low_is_half(const OptimizerCall& call) {
  if (call.low == nullptr || call.low->dtype() == Dtype::kBFloat16) return false;
  CATENA_CHECK(DtypeError, call.low->dtype() == Dtype::kFloat16,
               "optimizer_update: no kernel writes parameters of ", call.low->dtype());
  return true;
}

}  // namespace catena
