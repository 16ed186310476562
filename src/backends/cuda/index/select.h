// Gather and scatter through several lists of positions: plain arguments.
#pragma once

#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

constexpr int kSelectDims = 24;
constexpr int kSelectLists = 3;
constexpr int kSelectOperands = 2 + kSelectLists;  // values, base, lists

// A loop nest over copying units; dimension ndim - 1 is the innermost one, strides are in bytes.
struct SelectArgs {
  char* pointers[kSelectOperands];
  int64_t shape[kSelectDims];
  int64_t strides[kSelectOperands][kSelectDims];
  int64_t extents[kSelectLists];  // 0: the positions need no wrapping
  int64_t steps[kSelectLists];    // bytes for each position
  int64_t size;                   // the number of units
  int ndim;
  int lists;
  int unit;   // 16, 8, 4, 2 or 1 bytes
  bool wide;  // int64 positions, else int32
  bool clip;
  // For scatter with one list: for each of the extents[0] elements the last index in the list that
  // names it, filled by the launch. Null: any of the values may remain.
  long long* last;
};

void launch_gather(const SelectArgs& args, const Launch& launch);
void launch_scatter(const SelectArgs& args, const Launch& launch);
// For `count` positions of one contiguous list: args.last[p] = the largest index of p in the list.
void launch_last_positions(const void* positions, bool wide, bool clip, int64_t count,
                           int64_t extent, long long* last, const Launch& launch);

}  // namespace catena::gpu
