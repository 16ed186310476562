// The scan of one line by CUB. Sums and products are compiled in separate files.
#pragma once

#include <cub/device/device_scan.cuh>

#include "backends/cuda/scan/scan_types.cuh"

namespace catena::gpu {

template <bool kProduct>
cudaError_t line_scan(void* scratch, size_t& bytes, const ScanArgs& args, cudaStream_t stream) {
  return visit_scan(args, [&](auto input, auto* output) {
    using A = typename RunningType<std::remove_pointer_t<decltype(output)>>::type;
    return cub::DeviceScan::InclusiveScan(scratch, bytes, input, output, Combine<A, kProduct>(),
                                          args.count, stream);
  });
}

cudaError_t line_product(void* scratch, size_t& bytes, const ScanArgs& args, cudaStream_t stream);

}  // namespace catena::gpu
