// Digests by which ranks compare arrays without sending them.
#pragma once

#include <cstdint>

#include "catena/array/array.h"

namespace catena::parallel {

// Adds a value to a hash.
uint64_t mix(uint64_t hash, uint64_t value);

// Follows from the bytes of an array, in C order, alone: not from its device. Reads it once there,
// and waits for that. NaNs of equal bits are equal.
uint64_t digest_of(const Array& array);

}  // namespace catena::parallel
