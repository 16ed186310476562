// Inputs that share memory with the output.
#pragma once

#include "catena/array/array.h"

namespace catena {

// Whether writing `output` element by element may change elements of `input` that are read later:
// they share memory, and they are not the same elements in the same order.
inline bool overlaps(const Array& input, const Array& output) {
  const bool same = input.raw_data() == output.raw_data() && input.strides() == output.strides() &&
                    input.shape() == output.shape() && input.dtype() == output.dtype();
  return !same && input.shares_memory_with(output);
}

}  // namespace catena
