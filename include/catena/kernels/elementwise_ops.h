// Element-wise operations by name, ops::add: those that code of the library and its tests names.
// Constants of the library, so that rows of the table can come and change without those who name
// operations being compiled again. An operation that is not here yet gets a line where it is needed
// first.
#pragma once

#include "catena/kernels/elementwise.h"

namespace catena::ops {

// The operation of this name.
extern const ElementwiseOp absolute, add, arctan2, bitwise_and, clip, cos, divide, equal, erf, exp,
    expm1, fmax, fmin, greater, greater_equal, invert, isfinite, isinf, isnan, less, less_equal,
    log, log1p, logaddexp, logical_and, logical_or, maximum, minimum, multiply, not_equal, positive,
    power, relu, rint, sigmoid, sign, signbit, sin, softplus, sqrt, subtract, tanh, where;

}  // namespace catena::ops
