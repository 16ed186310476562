// Clocks of ranks in traces (catena/core/trace.h).
#pragma once

#include <cstdint>
#include <span>

#include "catena/comm/communicator.h"

namespace catena::comm {

// One question of a rank to rank 0: sent and answered by the rank's own clock, and what rank 0's
// clock said in between. Nanoseconds.
struct RoundTrip {
  int64_t sent, said, answered;
};

// What must be added to a rank's times to get rank 0's; the two differ from it by at most `error`.
struct ClockOffset {
  int64_t offset, error;
};

// By the shortest of the round trips, of which there is at least one: half of it is the error.
ClockOffset clock_offset(std::span<const RoundTrip> trips);

// Gives the traces of all ranks one time line, that of rank 0, and each its rank. Collective: all
// ranks call it, and all or none record a trace (else they wait for each other). A few messages
// between rank 0 and each other rank. create_communicator does so by itself, once a process, when
// CATENA_TRACE is set, which must then be set for all ranks, and its communicator does it again
// when it is closed. Clocks of different hosts drift apart by some microseconds a second, which the
// second time takes into account; ranks of one host share a clock.
void align_traces(Communicator& comm);

}  // namespace catena::comm
