// Lengths of vectors whose gradients are defined at 0.
#pragma once

#include "catena/functions/array/reshape.h"
#include "catena/functions/math.h"

namespace catena::functions {

// Squared lengths of the rows of (n, ...), (n).
inline Variable squared_lengths(const Variable& x) {
  const Variable squares = square(x);
  return sum(x.ndim() == 2 ? squares : reshape(squares, {x.shape()[0], x.shape()[0] ? -1 : 0}), 1);
}

// The square root of squares, at least `least`. Where it is that, the gradient is 0.
inline Variable length_of(const Variable& squares, double least = 1e-12) {
  return sqrt(maximum(squares, least * least));
}

}  // namespace catena::functions
