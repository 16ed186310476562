// Operands whose memory order differs from that of the result.
#pragma once

#include "catena/array/array.h"

namespace catena::host {

// Whether walking the array in C order jumps from cache line to cache line although another order
// would not. A large array of this kind is copied first, tile by tile.
bool is_transposed(const Array& input);

}  // namespace catena::host
