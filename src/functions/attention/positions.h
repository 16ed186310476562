// Inputs of layers at each position, (batch, positions, size).
#pragma once

#include "catena/autograd/variable.h"
#include "catena/core/error.h"

namespace catena::functions {

// ShapeError that names the layer unless x is (batch, positions, size).
inline void check_positions(const char* layer, const char* name, const Variable& x, int64_t size) {
  CATENA_CHECK(ShapeError, x.ndim() == 3 && x.shape()[2] == size, layer, ": expected ", name,
               " as (batch, positions, ", size, "), got shape ", x.shape());
}

}  // namespace catena::functions
