// Host glue of the scan slot.
#include "backends/cuda/scan/scan.h"

#include "backends/common/family.h"
#include "backends/cuda/runtime/glue.h"
#include "catena/core/config.h"
#include "catena/kernels/copy.h"
#include "catena/kernels/scan.h"

namespace catena::gpu {
namespace {

// With fewer lines the multiprocessors are better used by one line at a time.
constexpr int64_t kFewLines = 32, kLongLine = 1 << 16;
// Up to this length one block ends before a second kernel would have begun.
constexpr int64_t kShortLine = 4096;
constexpr int64_t kFewColumns = 4096, kLongColumn = 512;

void scan_lines(bool product, ScanArgs args, const Array& input, const Array& output) {
  const Launch launch = launch_for(output);
  const int64_t lines = args.outer;
  const bool one_order = config().deterministic && is_float(output.dtype());
  if (one_order || lines >= kFewLines || args.count <= kShortLine ||
      (lines > 1 && args.count < kLongLine))
    return launch_scan(product, args, launch);
  args.scratch_bytes = line_scan_scratch_bytes(product, args.type, args.count);
  const StoragePtr scratch = allocate(output.device(), args.scratch_bytes);
  args.scratch = scratch->data;
  const int64_t in_bytes = args.count * input.itemsize(),
                out_bytes = args.count * output.itemsize();
  for (int64_t line = 0; line < lines; ++line) {
    CATENA_CUDA_CHECK(launch_line_scan(product, args, launch));
    args.input = static_cast<const char*>(args.input) + in_bytes;
    args.output = static_cast<char*>(args.output) + out_bytes;
  }
}

void scan(const ScanCall& call) {
  const Array &input = *call.input, &output = *call.output;
  const int64_t outer = input.shape()[0], count = input.shape()[1], inner = input.shape()[2];
  if (itemsize(output.dtype()) < 8 && !is_float(output.dtype())) {
    // Narrow integers wrap when their 64 bits are truncated. For bool a nonzero sum is "or", the
    // product is "and".
    const Array wide = Array::uninitialized(output.shape(), Dtype::kInt64, output.device());
    scan(ScanCall{call.product, &input, &wide});
    return kernels::copy(output.device(), {wide, output});
  }
  if (inner > 1 && outer * inner < kFewColumns && count >= kLongColumn) {
    // Too few columns for one thread each: they are scanned like lines.
    const Array lines = input.swapaxes(1, 2).copy().reshape({outer * inner, count, 1});
    const Array sums = Array::uninitialized(lines.shape(), output.dtype(), output.device());
    scan(ScanCall{call.product, &lines, &sums});
    return kernels::copy(output.device(),
                         {sums.reshape({outer, inner, count}).swapaxes(1, 2), output});
  }
  ScanArgs args{};
  args.input = input.raw_data();
  args.output = output.raw_data();
  args.outer = outer;
  args.count = count;
  args.inner = inner;
  args.type = static_cast<Element>(input.dtype());
  if (inner == 1)
    scan_lines(call.product, args, input, output);
  else
    launch_scan(call.product, args, launch_for(output));
  check_launch("scan");
}

}  // namespace

}  // namespace catena::gpu

CATENA_FAMILY(cuda, scan) { kernels::scan.provide<&gpu::scan>(DeviceType::kCuda, "cuda"); }
