// Joins up to kConcatInputs contiguous inputs along an axis in one launch. NVRTC only; the text
// before this file defines ConcatWord, an unsigned word of 1 to 16 bytes.
#pragma once

#include "device/args.h"
#include "device/prelude.cuh"

namespace catena {
namespace jit {

constexpr int kConcatUnroll = 4;

// Every input has its own blocks; block b of an input moves the words from b * kMapThreads *
// kConcatUnroll on.
CATENA_KERNEL __launch_bounds__(kMapThreads)
    catena_concatenate(const __grid_constant__ ConcatArgs a) {
  wait_for_previous_kernel();
  int k = 0;
  while (k + 1 < a.count && blockIdx.x >= a.first_block[k + 1]) ++k;
  const int64_t width = a.width[k], size = width * a.rows;
  const ConcatWord* input = static_cast<const ConcatWord*>(a.input[k]);
  ConcatWord* output = static_cast<ConcatWord*>(a.output) + a.column[k];
  const int64_t begin =
      int64_t(blockIdx.x - a.first_block[k]) * (kMapThreads * kConcatUnroll) + threadIdx.x;
  ConcatWord words[kConcatUnroll];
#pragma unroll
  for (int u = 0; u < kConcatUnroll; ++u) {
    if (begin + u * kMapThreads < size) words[u] = input[begin + u * kMapThreads];
  }
#pragma unroll
  for (int u = 0; u < kConcatUnroll; ++u) {
    const int64_t i = begin + u * kMapThreads;
    if (i >= size) continue;
    const int64_t row = size < 0x80000000ll ? int64_t(uint32_t(i) / uint32_t(width)) : i / width;
    output[row * a.output_width + (i - row * width)] = words[u];
  }
}

}  // namespace jit
}  // namespace catena
