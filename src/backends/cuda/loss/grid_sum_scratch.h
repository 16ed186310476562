// Makes the scratch memory of sums over the blocks of a grid.
#pragma once

#include "backends/cuda/loss/grid_sum.h"
#include "backends/cuda/runtime/glue.h"

namespace catena::gpu {

// The storage may be released when the kernel is queued, because later users of the memory follow
// it in the stream.
template <class T>
StoragePtr add_scratch(GridSums<T>& scratch, int blocks, Device device, const Launch& launch) {
  if (blocks == 1) return {};
  const size_t bytes = static_cast<size_t>(blocks) * sizeof(T);
  StoragePtr memory = allocate(device, bytes + sizeof(unsigned));
  scratch.sums = static_cast<T*>(memory->data);
  scratch.finished = reinterpret_cast<unsigned*>(static_cast<char*>(memory->data) + bytes);
  CATENA_CUDA_CHECK(cudaMemsetAsync(scratch.finished, 0, sizeof(unsigned), launch.stream));
  return memory;
}

}  // namespace catena::gpu
