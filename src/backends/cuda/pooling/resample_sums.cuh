// Stores of the sums of resampling kernels.
#pragma once

#include "backends/cuda/pooling/pooling_index.cuh"
#include "backends/cuda/pooling/resample.h"

namespace catena::gpu {

// Writes sums / divisor to y, or adds them to it.
template <class T, int N>
__device__ void give_sums(const ResampleArgs& args, int64_t at, const Compute<T> (&sums)[N],
                          Compute<T> divisor) {
  Pack<T, N> result;
  if (args.accumulate) result = load_pack<T, N>(args.y, at);
#pragma unroll
  for (int c = 0; c < N; ++c) {
    const Compute<T> mean = divisor == 1 ? sums[c] : sums[c] / divisor;
    result.v[c] = Narrow<T>::from(args.accumulate ? widen(result.v[c]) + mean : mean);
  }
  store_pack<T, N>(args.y, at, result);
}

}  // namespace catena::gpu
