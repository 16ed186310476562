// Choice of the way of a collective between GPUs of one host, by its size.
#pragma once

#include "nccl_calls.h"

namespace catena::comm::nccl {

// Bytes of one rank. All else goes to NCCL.
struct Ways {
  int64_t exchange = 0;  // sums up to this many: peer_exchange.h
  int64_t gather = 0;    // gathers up to this many: the same
  int64_t two_shot = 0;  // larger ones up to this many: two_shot.h
  int blocks = 0;        // of its kernel, at most
  // Those of arenas of at least so many over all ranks: copy_collectives.h; 0: none.
  int64_t copied_gather = 0, copied_sum = 0;
};

// Where arrays are that go through many collectives.
enum class SharedMemory : uint8_t {
  kPool,   // where all arrays do
  kPeers,  // in memory that the GPUs of the host have mapped, so that sums are written into it
  kWindow  // in a window that is registered with NCCL
};

// As measured with so many ranks.
Ways measured_ways(int ranks);
SharedMemory measured_memory(int ranks);

// The same, unless the environment of rank 0 says otherwise: CATENA_ALL_REDUCE (auto, exchange,
// two-shot or nccl: calls go this way as far as it takes them), CATENA_TWO_SHOT_BLOCKS (a
// number), CATENA_COPIED_GATHER, CATENA_COPIED_SUM (bytes) and CATENA_SHARED_MEMORY (auto, pool,
// peers or window). Collective.
struct Choice {
  Ways ways;
  SharedMemory memory = SharedMemory::kPool;
};
Choice choose(Communicator& control);

}  // namespace catena::comm::nccl
