// The mask of a relu that was fused into batch normalization.
#pragma once

#include "backends/cuda/common/float_access.cuh"
#include "backends/cuda/normalization/normalization.h"

namespace catena::gpu {
namespace {

// Where y is positive, for packs of N elements: one bit an element.
template <int N>
struct ReluMask {
  uint8_t* bytes;
  int elements, shift;  // of a byte, a power of two; its logarithm

  __device__ explicit ReluMask(const NormalizationMask& mask)
      : bytes(mask.bytes),
        elements(mask.elements),
        shift((mask.elements > 1) + (mask.elements > 2) + (mask.elements > 4)) {}

  // In the walk that normalization_walk() made the mask for, a byte holds a pack.
  template <class T>
  __device__ void store(int64_t at, const Pack<T, N>& y) const {
    unsigned positive = 0;
#pragma unroll
    for (int k = 0; k < N; ++k) positive |= unsigned(widen(y.v[k]) > Compute<T>(0)) << k;
    bytes[at] = uint8_t(positive);
  }
  // Of the pack at `at`. The backward pass may take other packs than made the mask, where arrays of
  // one of the passes are not aligned.
  __device__ unsigned load(int64_t at) const {
    const int64_t first = at * N;
    if (elements >= N) return unsigned(bytes[first >> shift]) >> bit(first);
    unsigned positive = 0;
#pragma unroll
    for (int k = 0; k < N; ++k)
      positive |= (unsigned(bytes[(first + k) >> shift]) >> bit(first + k) & 1) << k;
    return positive;
  }

 private:
  __device__ int bit(int64_t element) const { return int(element) & (elements - 1); }
};

}  // namespace
}  // namespace catena::gpu
