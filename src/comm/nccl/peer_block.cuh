// The same for the kernels themselves.
#pragma once

#include "peer_block.h"

namespace catena::comm::nccl {

__device__ inline bool stopped(const BlockState* state) {
  return *reinterpret_cast<const volatile uint32_t*>(&state->stop) != 0;
}

// By one thread of a block, before it writes or waits; returns the number of the call. Graphs of
// which two run at once have to come one after the other.
__device__ inline uint32_t begin_call(BlockState* state) {
  for (;;) {
    const uint32_t before = atomicOr(&state->calls, kLocked);
    if (!(before & kLocked) || stopped(state)) return (before + 1) & ~kLocked;
  }
}

// By the same thread, when all threads of the block have read what they waited for.
__device__ inline void end_call(BlockState* state, uint32_t call) {
  atomicExch(&state->calls, call);
}

}  // namespace catena::comm::nccl
