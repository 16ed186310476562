// Positions of index arrays on the CPU.
#pragma once

#include "catena/array/indexing.h"

namespace catena::host {

// A position of the index array as one inside [0, extent).
inline int64_t resolve(int64_t index, int64_t extent, OutOfRange mode) {
  if (index >= 0 && index < extent) return index;
  if (mode == OutOfRange::kClip) return index < 0 ? 0 : extent - 1;
  if (index < 0 && index >= -extent) return index + extent;
  const int64_t rest = index % extent;
  return rest < 0 ? rest + extent : rest;
}

template <class F>
void with_indices(const Array& indices, const F& f) {
  if (indices.dtype() == Dtype::kInt32)
    f(indices.data<int32_t>());
  else
    f(indices.data<int64_t>());
}

}  // namespace catena::host
