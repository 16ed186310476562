// Running products of one line.
#include "backends/cuda/scan/line_scan.cuh"

namespace catena::gpu {

cudaError_t line_product(void* scratch, size_t& bytes, ScanType type, const ScanArgs& args,
                         cudaStream_t stream) {
  return line_scan<true>(scratch, bytes, type, args, stream);
}

}  // namespace catena::gpu
