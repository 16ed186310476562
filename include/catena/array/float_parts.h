// Floating numbers taken apart and put together: mantissa and exponent, whole and broken part, the
// neighbour; and quotient with remainder.
//
// Operands are arrays or host numbers and broadcast; integers and bool are promoted to a float as
// in math.h. Exact for every number, subnormal ones included, on every device. Each is a few
// element-wise kernels, whose result is stored into `out` at the end. Casts of `out` and of its
// dtype, in which the function computes, go by the same_kind rule; a mask is a ValueError. Errors:
// ShapeError, DtypeError, DeviceError naming the function.
#pragma once

#include <utility>

#include "catena/array/array.h"

namespace catena {

// Where two results go: nothing given makes new arrays. modf(x, {fraction, whole}).
struct OutPair {
  const Array* first = nullptr;  // of the broadcast shape, as Out's
  const Array* second = nullptr;
  std::optional<Dtype> dtype;  // computes in this dtype

  OutPair() = default;
  OutPair(const Array& first_out, const Array& second_out)
      : first(&first_out), second(&second_out) {}
  OutPair(Dtype d) : dtype(d) {}
};

// (fraction, whole number), both with the sign of x: modf(-2.5) is (-0.5, -2). The fraction of an
// infinity is 0.
std::pair<Array, Array> modf(const Operand& x, const OutPair& out = {});

// (mantissa, int32 exponent) with x = mantissa * 2^exponent and 0.5 <= |mantissa| < 1. Zero,
// infinities and NaN are their own mantissa, with exponent 0.
std::pair<Array, Array> frexp(const Operand& x, const OutPair& out = {});

// x * 2^exponent, rounded once; `exponent` is an integer or an integer array (DtypeError for
// another dtype). The result has the dtype of x, promoted to a float.
Array ldexp(const Operand& x, const Operand& exponent, const Out& out = {});

// The next number after x1 in the direction of x2, in the promoted dtype of both.
Array nextafter(const Operand& x1, const Operand& x2, const Out& out = {});

// (floor_divide(x1, x2), remainder(x1, x2)).
std::pair<Array, Array> divmod(const Operand& x1, const Operand& x2, const OutPair& out = {});

}  // namespace catena
