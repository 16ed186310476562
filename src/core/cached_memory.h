// What pools keep of freed memory, given back where a program goes on with blocks of other sizes.
#pragma once

#include "catena/core/graph.h"
#include "catena/core/memory.h"

namespace catena {

// Returns the device's cached memory to the system, if that is `least` bytes or more. Waits for the
// work that may still use it. Nothing while the current stream is captured.
inline void give_back_cached(Device device, size_t least) {
  if (memory_statistics(device).cached >= least && !cuda::is_capturing(device))
    free_all_blocks(device);
}

}  // namespace catena
