// Floating numbers taken apart and put together: mantissa and exponent, whole and broken part, the
// neighbour; and quotient with remainder.
//
// Integers and bool are promoted to a float as in math.h. Exact for every number, subnormal ones
// included, on every device. Each is a few element-wise kernels; results are new arrays.
#pragma once

#include <utility>

#include "catena/array/array.h"

namespace catena {

// (fraction, whole number), both with the sign of x: modf(-2.5) is (-0.5, -2). The fraction of an
// infinity is 0.
std::pair<Array, Array> modf(const Array& x);

// (mantissa, int32 exponent) with x = mantissa * 2^exponent and 0.5 <= |mantissa| < 1. Zero,
// infinities and NaN are their own mantissa, with exponent 0.
std::pair<Array, Array> frexp(const Array& x);

// x * 2^exponent, rounded once; `exponent` is an integer array that broadcasts with x (DtypeError
// for another dtype). The result has the dtype of x, promoted to a float.
Array ldexp(const Array& x, const Array& exponent);

// The next number after x1 in the direction of x2, in the promoted dtype of both.
Array nextafter(const Array& x1, const Array& x2);

// (floor_divide(x1, x2), remainder(x1, x2)).
std::pair<Array, Array> divmod(const Operand& x1, const Operand& x2);

}  // namespace catena
