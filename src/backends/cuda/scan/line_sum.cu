// Running sums of one line, and the dispatch between sums and products.
#include "backends/cuda/scan/line_scan.cuh"

namespace catena::gpu {
namespace {

cudaError_t run(bool product, void* scratch, size_t& bytes, const ScanArgs& args,
                cudaStream_t stream) {
  return product ? line_product(scratch, bytes, args, stream)
                 : line_scan<false>(scratch, bytes, args, stream);
}

}  // namespace

size_t line_scan_scratch_bytes(bool product, Element type, int64_t count) {
  ScanArgs args{};
  args.type = type;
  args.count = count;
  size_t bytes = 0;
  run(product, nullptr, bytes, args, nullptr);
  return bytes;
}

cudaError_t launch_line_scan(bool product, const ScanArgs& args, const Launch& launch) {
  size_t bytes = args.scratch_bytes;
  return run(product, args.scratch, bytes, args, launch.stream);
}

}  // namespace catena::gpu
