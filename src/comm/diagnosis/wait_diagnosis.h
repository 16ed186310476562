// Diagnosis of a wait: the ranks that it is for, according to their records on the status board.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "catena/comm/transport.h"
#include "peer_status.h"

namespace catena::comm {

// The number of the last call of every rank on one communicator. Nothing where the records do not
// say: on other hosts, and where calls on other communicators may have overwritten them.
using LastCalls = std::vector<std::optional<uint64_t>>;
LastCalls last_calls(const BoardPlace& place, uint64_t id);
// The ranks that are known not to have made this call yet.
std::vector<int> late_ranks(const LastCalls& last, uint64_t sequence);
// The ranks whose last call is the oldest; none when all known made the same number.
std::vector<int> slowest_ranks(const LastCalls& last);
// Implements diagnose_timeout of transport.h. Without a board it knows nothing of other ranks.
WaitDiagnosis diagnose_timeout(const BoardPlace& place, uint64_t id, double timeout,
                               const Wait& wait);

}  // namespace catena::comm
