// For routines that read a few numbers back from the device.
#pragma once

#include "catena/array/array.h"
#include "catena/core/graph.h"

namespace catena {

// Throws Error naming `who` while the calling thread captures a graph on the array's device.
inline void refuse_capture(const char* who, const Array& a) {
  CATENA_CHECK(Error, !cuda::is_capturing(a.device()), who, ": the host waits for a number from ",
               a.device(),
               ", which is not possible while a graph is captured there; move the call out of the"
               " captured step");
}

}  // namespace catena
