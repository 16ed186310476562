// The generic entry that every named element-wise function (add, exp, ...) and every gradient goes
// through.
#pragma once

#include <initializer_list>

#include "catena/array/array.h"
#include "catena/kernels/elementwise.h"

namespace catena {

// Promotes, broadcasts, allocates (unless out names an array) and runs the operation.
// At least one operand must be an array, or the result is a 0-d array on current_device().
// Errors: ShapeError, DtypeError, DeviceError, all naming the operation.
Array elementwise(ElementwiseOp op, std::initializer_list<Operand> operands, const Out& out = {});

}  // namespace catena
