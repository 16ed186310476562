// For tests: faults in a rank, to see that the other ranks end with a clear error.
#pragma once

#include <cstdint>

#include "catena/comm/communicator.h"

namespace catena::comm {

// What happens, and in which call.
struct Fault {
  // The kinds of faults.
  enum class Kind : uint8_t {
    kNone,
    kDelay,  // sleeps `seconds` before the call
    kSkip,   // does not make the call (its output keeps its old values)
    kThrow,  // throws std::runtime_error("injected fault")
    kExit,   // ends the process by exit(seconds)
    kKill,   // ends the process by SIGKILL
  };
  Kind kind = Kind::kNone;  // what happens
  uint64_t at_call = 0;     // the n-th call that this rank makes on the communicator, from 1
  double seconds = 0;       // the exit code, with kExit
};

// The fault happens in this rank's call number `at_call`. Replaces the fault that was set before.
void inject_fault(Communicator& comm, const Fault& fault);

}  // namespace catena::comm
