// The same for the kernels themselves.
#pragma once

#include "peer_block.h"

namespace catena::comm::nccl {

__device__ inline bool stopped(const BlockState* state) {
  return *reinterpret_cast<const volatile uint32_t*>(&state->stop) != 0;
}

// By one thread of a block, before anything else; returns the number of the call. Graphs of which
// two run at once have to come one after the other.
__device__ inline uint32_t begin_call(BlockState* state) {
  while (atomicCAS(&state->lock, 0u, 1u) != 0u && !stopped(state)) {
  }
  __threadfence();
  return *reinterpret_cast<volatile uint32_t*>(&state->calls) + 1;
}

// By the same thread, when all threads of the block are done.
__device__ inline void end_call(BlockState* state, uint32_t call) {
  state->calls = call;
  __threadfence();
  atomicExch(&state->lock, 0u);
}

}  // namespace catena::comm::nccl
