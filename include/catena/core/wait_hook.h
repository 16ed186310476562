// A hook into the host's waits for a device.
//
// A collective whose ranks disagree, or whose peer died, never ends on the GPU. Backends whose
// waits go through the hook let the communicator end such a wait with an exception that says why.
#pragma once

#include <atomic>

#include "catena/core/device.h"

namespace catena {

// Called by the waiting thread with 0 before it waits and with a negative number when the device is
// done. May throw; the exception leaves the wait. A wait that cannot end is ended from elsewhere:
// the communicator's watchdog aborts what the device waits for, and the second call throws.
using WaitHook = void (*)(Device device, double waited);

inline std::atomic<WaitHook>& wait_hook() {
  static std::atomic<WaitHook> hook{nullptr};
  return hook;
}

}  // namespace catena
