// Layers at each position of (batch, positions, size).
#pragma once

#include "catena/functions/array/reshape.h"
#include "catena/functions/connection/linear.h"

namespace catena::functions {

// ShapeError that names the layer unless x is (batch, positions, size).
inline void check_positions(const char* layer, const char* name, const Variable& x, int64_t size) {
  CATENA_CHECK(ShapeError, x.ndim() == 3 && x.shape()[2] == size, layer, ": expected ", name,
               " as (batch, positions, ", size, "), got shape ", x.shape());
}

inline Variable as_rows(const Variable& x) {
  const Shape& shape = x.shape();
  return reshape(x, {shape[0] * shape[1], shape[2]});
}
// The opposite, of what a layer gives for the rows.
inline Variable as_positions(const Variable& rows, const Variable& x) {
  return reshape(rows, {x.shape()[0], x.shape()[1], rows.shape()[1]});
}
inline Variable at_positions(const Linear& layer, const Variable& x) {
  return as_positions(layer(as_rows(x)), x);
}

}  // namespace catena::functions
