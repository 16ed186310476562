// Resampling: plain arguments. Names as in catena/kernels/resample.h.
#pragma once

#include "backends/common/axis_ranges.h"
#include "backends/cuda/runtime/launch.h"

namespace catena::gpu {

// With channels first each channel counts as an image of one channel, so that the channels are
// innermost in all of them.
struct ResampleArgs {
  int64_t images, channels;
  AxisMap row_map, column_map;
  AxisRanges rows, columns;  // of the direction of the call
  double divisor;
  bool adjoint;
  bool aligned;  // both addresses are multiples of 16
  bool accumulate;
  const void* x;
  void* y;
};

// Writes y, or adds to it.
void launch_resample(Float type, const ResampleArgs& args, const Launch& launch);
// The same for small windows, of images whose indices fit 32 bits; false for others.
bool launch_window_sums(Float type, const ResampleArgs& args, const Launch& launch);
// The same for images of one channel and one element that gives all of y; false for others.
bool launch_resample_planes(Float type, const ResampleArgs& args, const Launch& launch);
// The same for images of one channel whose rows fit shared memory; false for others.
bool launch_resample_rows(Float type, const ResampleArgs& args, const Launch& launch);

}  // namespace catena::gpu
