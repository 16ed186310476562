// Host glue of the slot of resampling.
#include "backends/cuda/pooling/resample.h"

#include "backends/common/family.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/kernels/resample.h"

namespace catena::gpu {
namespace {

void resample(const ResampleCall& call) {
  const Array &x = *call.x, &y = *call.y;
  ResampleArgs args{};
  args.images = x.shape()[0], args.channels = x.shape()[1];
  if (x.is_contiguous() && y.is_contiguous()) args.images *= args.channels, args.channels = 1;
  args.row_map = call.rows, args.column_map = call.columns, args.adjoint = call.adjoint;
  args.rows = axis_ranges(call.rows, call.adjoint);
  args.columns = axis_ranges(call.columns, call.adjoint);
  args.divisor = call.divisor, args.accumulate = call.accumulate;
  args.x = x.raw_data(), args.y = y.raw_data();
  args.aligned = aligned16(args.x, args.y);
  launch_resample(float_code("resample", x.dtype()), args, launch_for(x));
  check_launch("resample");
}

}  // namespace
}  // namespace catena::gpu

CATENA_FAMILY(cuda, resample) {
  kernels::resample.provide<&gpu::resample>(DeviceType::kCuda, "cuda");
}
