// A kernel in which the ranks of a host wait for each other, as C++ sees it. Streams that wait for
// words in memory need some 140 us for as much, this one 6 to 15.
#pragma once

#include <cuda_runtime_api.h>

#include "peer_block.h"

namespace catena::comm::nccl {

// The memory of a rank: its state, whose count is that of its meetings, and the counts that the
// others write.
struct Meeting {
  int rank, ranks;
  BlockState* state;             // of this rank
  uint32_t* counts[kMostRanks];  // of all ranks: of each other rank, how often it has come
};

// What follows in the stream begins when the streams of all ranks have come to this. It sees what
// they have written before.
cudaError_t launch_meeting(const Meeting& meeting, cudaStream_t stream);

}  // namespace catena::comm::nccl
