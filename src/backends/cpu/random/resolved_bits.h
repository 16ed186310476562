// Random bits whose seed and offset may be on the device of a captured step.
#pragma once

#include "catena/array/array.h"
#include "catena/kernels/random.h"

namespace catena::host {

// The seed and the first block, with what `base` says.
inline RandomBits resolved(const RandomBits& bits) {
  if (bits.base == nullptr) return bits;
  const uint64_t* base = bits.base->data<uint64_t>();
  return {base[0], bits.offset + base[1], nullptr};
}

}  // namespace catena::host
