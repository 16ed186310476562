// Inputs of dense layers: (n, ...), flattened behind the first axis to (n, in).
#pragma once

#include "catena/functions/array/reshape.h"

namespace catena::functions {

// How many numbers each of the n has.
inline int64_t flat_extent(const Shape& shape) {
  int64_t count = 1;
  for (size_t i = 1; i < shape.size(); ++i) count *= shape[i];
  return count;
}
inline Shape flat_shape(const Shape& shape) { return {shape[0], flat_extent(shape)}; }
inline Array flatten(const Array& x) {
  return x.ndim() == 2 ? x : x.reshape(flat_shape(x.shape()));
}
inline Variable flatten(const Variable& x) { return reshape(x, flat_shape(x.shape())); }

}  // namespace catena::functions
