// In which dtype the element-wise loops compute.
#pragma once

#include "backends/cpu/loops/tables.h"
#include "catena/core/dtype_info.h"
#include "catena/kernels/elementwise.h"

namespace catena::host {

// float32 for 16-bit floats.
inline Dtype loop_dtype(Dtype d) { return is_narrow_float(d) ? Dtype::kFloat32 : d; }
// The loop over buffers of float, where 16-bit floats have one of their own; else null.
Loop narrow_loop(ElementwiseOp op, Dtype dtype);

}  // namespace catena::host
