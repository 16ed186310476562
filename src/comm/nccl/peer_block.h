// State of a block of the kernels that wait for kernels of other ranks, as C++ sees it.
#pragma once

#include <cstdint>

namespace catena::comm::nccl {

constexpr int kMostRanks = 8;

// Of each block of such a kernel, at the head of each rank's memory. The blocks of a rank do not
// wait for each other: each has its part of the memory, and its count of the calls that needed it.
struct BlockState {
  uint32_t calls;  // that have ended, and kLocked while one runs
  uint32_t stop;   // not 0: nothing is waited for any more
  uint32_t unused[2];
};
constexpr uint32_t kLocked = 1u << 31;

// Equal on all ranks for one call, and different for calls that may meet by mistake.
constexpr uint32_t call_number(uint64_t sequence) { return uint32_t(sequence) * 0x9E3779B1u; }

}  // namespace catena::comm::nccl
