// The element-wise operations by name: ops::add. Constants of the library, so that a row of the
// table can change without those who name its operation being compiled again.
#pragma once

#include "catena/kernels/elementwise.h"

namespace catena::ops {

#define CATENA_NAME1(name) extern const ElementwiseOp name;
#define CATENA_NAME2(name) extern const ElementwiseOp name;
#define CATENA_NAME3(name) extern const ElementwiseOp name;
#include "catena/kernels/detail/elementwise_names.def"

}  // namespace catena::ops
