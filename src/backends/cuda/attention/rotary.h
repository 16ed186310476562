// Rotary positions: plain arguments. Names as in catena/kernels/rotary.h.
#pragma once

#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

// Pairs of one launch: their frequencies are arguments of the kernel.
inline constexpr int kMostRotaryPairs = 256;

// An array of four axes; strides in elements.
struct RotaryArray {
  void* data;
  int64_t strides[4];
};

struct RotaryArgs {
  RotaryArray x, y;
  int64_t batch, heads, positions;
  int all_pairs;             // of the call
  int first_pair, pairs;     // of this launch
  int rest;                  // numbers behind all pairs that this launch copies
  const int32_t* places;     // null: 0, 1, ...
  int64_t place_strides[2];  // in elements
  int64_t start;
  double cos_factor, sin_factor;
  bool interleaved;
  bool packed;  // the depth is contiguous, and all rows, pairs and the rest are packs of 16 bytes
  double frequencies[kMostRotaryPairs];
};

void launch_rotary(Float type, const RotaryArgs& args, const Launch& launch);

}  // namespace catena::gpu
