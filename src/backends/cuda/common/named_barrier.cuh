// Meetings of some whole warps of a block.
#pragma once

namespace catena::gpu {

// The threads that call it with this number, 1 to 15, wait for one another; `threads`, a multiple
// of 32, is how many they are. Writes to shared memory before it are seen after it.
__device__ inline void meet(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// Counts as meet() for those that call meet(), whose reads need not be waited for.
__device__ inline void arrive(int number, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

}  // namespace catena::gpu
