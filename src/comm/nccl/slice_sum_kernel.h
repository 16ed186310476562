// The sum of slices of all ranks that have come into one memory, as C++ sees it.
#pragma once

#include <cuda_runtime_api.h>

#include "peer_block.h"
#include "sum_type.h"

namespace catena::comm::nccl {

// The same slice of the arrays of all ranks.
struct SliceSum {
  const void* operands[kMostRanks];  // in the order of the ranks
  void* sum;
  int ranks;
  size_t elements;
  SumType type;
  float divisor;  // of the sum
};
// Elements are added in the order of the ranks. Arrays may begin anywhere.
cudaError_t launch_slice_sum(const SliceSum& slice, cudaStream_t stream);

}  // namespace catena::comm::nccl
