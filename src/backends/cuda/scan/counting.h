// Elements that are not zero, and counting by value or by bin: plain arguments.
#pragma once

#include "backends/cuda/runtime/element.h"
#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

// Elements of 1, 2, 4 or 8 bytes; signless: the sign bit does not count (-0 is zero).
struct NonzeroArgs {
  const void* data;
  int bytes;
  bool signless;
  int64_t count;
};
// *result = the number of nonzero elements; the call clears it first.
cudaError_t launch_nonzero_count(const NonzeroArgs& args, int64_t* result, const Launch& launch);

size_t nonzero_scratch_bytes(const NonzeroArgs& args);
// Flat positions in order. `found` (one number in device memory) receives their number.
cudaError_t launch_nonzero(const NonzeroArgs& args, int64_t* positions, int64_t* found,
                           void* scratch, size_t scratch_bytes, const Launch& launch);

constexpr int kMaxUnravel = 24;
struct UnravelArgs {
  int64_t* positions;  // (ndim, count): row 0 holds flat positions
  int64_t count;
  int ndim;
  int64_t shape[kMaxUnravel];
};
void launch_unravel(const UnravelArgs& args, const Launch& launch);

// The calls clear `counts` first.
cudaError_t launch_bincount(Element type, const void* x, int64_t n, int64_t* counts, int64_t bins,
                            const Launch& launch);

struct HistogramArgs {
  const void* input;
  int64_t count;
  const void* edges;  // bins + 1
  int64_t bins;
  bool uniform;
  int64_t* counts;
};
// kFloat32, kFloat64, kInt64, kUInt64.
cudaError_t launch_histogram(Element type, const HistogramArgs& args, const Launch& launch);

}  // namespace catena::gpu
