// Random permutations by CUB's radix sort, which is stable: equal keys keep their order.
#include <cub/device/device_radix_sort.cuh>

#include "backends/cuda/common/philox_source.cuh"

namespace catena::gpu {
namespace {

constexpr int kThreads = 256;

__global__ void keys_kernel(PermutationArgs args) {
  for_blocks(args.source, args.count, [&](int64_t i, const philox::Block& b) {
    args.keys[i] = philox::bits64(b, 0);
    args.values[i] = i;
  });
}

cudaError_t sort(void* scratch, size_t& bytes, const PermutationArgs& args, cudaStream_t stream) {
  return cub::DeviceRadixSort::SortPairs(scratch, bytes, args.keys, args.sorted_keys, args.values,
                                         args.output, args.count, 0, 64, stream);
}

}  // namespace

size_t permutation_scratch_bytes(int64_t count) {
  PermutationArgs args{};
  args.count = count;
  size_t bytes = 0;
  sort(nullptr, bytes, args, nullptr);
  return bytes;
}

cudaError_t launch_permutation(const PermutationArgs& args, const Launch& launch) {
  keys_kernel<<<loop_blocks(args.count, kThreads, launch), kThreads, 0, launch.stream>>>(args);
  size_t bytes = args.scratch_bytes;
  return sort(args.scratch, bytes, args, launch.stream);
}

}  // namespace catena::gpu
