// Places of the largest elements that the built-in providers of max pooling keep for the gradient.
#pragma once

#include "backends/common/pooling_sizes.h"
#include "catena/array/array.h"
#include "catena/kernels/kept.h"

namespace catena {

// The number in its window of each largest element, in C order of the window, in the memory order
// of y: bytes, or 32 bits where the window has more than kMostTapsOfByte elements.
struct PoolingPlaces final : KeptState {
  Array of_position;
};

// Room for the places of y.
inline Array places_for(const PoolingSizes& s, const Array& y) {
  const Dtype dtype = s.taps() <= kMostTapsOfByte ? Dtype::kUInt8 : Dtype::kInt32;
  return Array::uninitialized({y.size()}, dtype, y.device());
}

}  // namespace catena
