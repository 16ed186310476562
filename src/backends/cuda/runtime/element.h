// The dtypes as hand-written kernels name them: .cu files cannot include catena/core/dtype.h.
#pragma once

#include <stdint.h>

namespace catena::gpu {

// Numbered like catena::Dtype, from which the host glue casts.
enum class Element : uint8_t {
#define CATENA_DTYPE(value, ...) value,
#include "catena/core/dtype_rows.def"
#undef CATENA_DTYPE
};

}  // namespace catena::gpu
