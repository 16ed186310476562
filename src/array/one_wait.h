// For routines that read a few numbers back from the device, which needs one wait.
#pragma once

#include "catena/array/array.h"
#include "catena/core/entry_scope.h"
#include "catena/core/graph.h"

namespace catena {

// Throws Error, naming the running EntryScope, if the calling thread captures a graph on the
// array's device.
inline void refuse_capture(const Array& a) {
  CATENA_CHECK(Error, !cuda::is_capturing(a.device()), called_function(),
               ": the host waits for a number from ", a.device(),
               ", which is not possible while a graph is captured there; move the call out of the"
               " captured step");
}

}  // namespace catena
