// Running products of one line.
#include "backends/cuda/scan/line_scan.cuh"

namespace catena::gpu {

cudaError_t line_product(void* scratch, size_t& bytes, const ScanArgs& args, cudaStream_t stream) {
  return line_scan<true>(scratch, bytes, args, stream);
}

}  // namespace catena::gpu
