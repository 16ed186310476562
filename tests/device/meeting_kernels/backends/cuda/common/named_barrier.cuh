// Stands in for src/backends/cuda/common/named_barrier.cuh, beside early_launch.cuh.
#pragma once

#include "backends/cuda/common/early_launch.cuh"

namespace catena::gpu {

inline void meet(int number, int threads) {
  wait_at(named_meetings.try_emplace(number, unsigned(threads)).first->second);
}

}  // namespace catena::gpu
