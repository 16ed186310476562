// A hook into the host's waits for a device.
//
// A collective whose ranks disagree, or whose peer died, never ends on the GPU. Backends whose
// waits go through the hook let the communicator end such a wait with an exception that says why.
#pragma once

#include <atomic>
#include <cstdint>

#include "catena/core/device.h"

namespace catena {

// The state of a wait of the host for a device.
enum class WaitPhase : uint8_t {
  kBegin,  // the host is about to wait
  kDone    // the device is done
};

// Called by the waiting thread in each phase. May throw; the exception leaves the wait. A wait that
// cannot end is ended from elsewhere: the communicator's watchdog aborts what the device waits for,
// and the second call throws.
using WaitHook = void (*)(Device device, WaitPhase phase);

// The hook of the process; null: none. Plug-ins share it.
std::atomic<WaitHook>& wait_hook();

}  // namespace catena
