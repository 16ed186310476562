// Sorts elements without positions, with CUB's radix sort on the elements' type, in as many passes
// as it needs. Its order differs in one point, which is corrected afterwards: NaNs with a sign come
// first.
#pragma once

#include <cub/device/device_radix_sort.cuh>

#include "backends/cuda/sort/ordered.cuh"

namespace catena::gpu {

template <class T>
cudaError_t sort_keys(void* scratch, size_t& bytes, const SortKeysArgs& args, cudaStream_t stream) {
  return cub::DeviceRadixSort::SortKeys(scratch, bytes, static_cast<const T*>(args.input),
                                        static_cast<T*>(args.output), args.count, 0,
                                        int(sizeof(T) * 8), stream);
}

template <class T>
size_t keys_scratch_bytes(int64_t count) {
  SortKeysArgs args{};
  args.count = count;
  size_t bytes = 0;
  sort_keys<T>(nullptr, bytes, args, nullptr);
  return bytes;
}

template <class T>
cudaError_t run_sort_keys(const SortKeysArgs& args, const Launch& launch) {
  size_t bytes = args.scratch_bytes;
  return sort_keys<T>(args.scratch, bytes, args, launch.stream);
}

// Parts of sort_keys_scratch_bytes and launch_sort_keys, in several files because every type takes
// seconds to compile.
// Integers of 8 and 16 bits; float numbers.
size_t narrow_keys_scratch_bytes(Element order, int64_t count);
cudaError_t launch_narrow_keys(Element order, const SortKeysArgs& args, const Launch& launch);
size_t float_keys_scratch_bytes(Element order, int64_t count);
cudaError_t launch_float_keys(Element order, const SortKeysArgs& args, const Launch& launch);

}  // namespace catena::gpu
