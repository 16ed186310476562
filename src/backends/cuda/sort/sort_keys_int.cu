// Integers of 32 and 64 bits, and the dispatch on all types.
#include "backends/cuda/sort/sort_keys.cuh"

namespace catena::gpu {

size_t sort_keys_scratch_bytes(Order order, int64_t count) {
  switch (order) {
    case Order::kU8:
    case Order::kI8:
    case Order::kU16:
    case Order::kI16: return narrow_keys_scratch_bytes(order, count);
    case Order::kU32: return keys_scratch_bytes<uint32_t>(count);
    case Order::kI32: return keys_scratch_bytes<int32_t>(count);
    case Order::kU64: return keys_scratch_bytes<uint64_t>(count);
    case Order::kI64: return keys_scratch_bytes<int64_t>(count);
    default: return float_keys_scratch_bytes(order, count);
  }
}

cudaError_t launch_sort_keys(Order order, const SortKeysArgs& args, const Launch& launch) {
  switch (order) {
    case Order::kU8:
    case Order::kI8:
    case Order::kU16:
    case Order::kI16: return launch_narrow_keys(order, args, launch);
    case Order::kU32: return run_sort_keys<uint32_t>(args, launch);
    case Order::kI32: return run_sort_keys<int32_t>(args, launch);
    case Order::kU64: return run_sort_keys<uint64_t>(args, launch);
    case Order::kI64: return run_sort_keys<int64_t>(args, launch);
    default: return launch_float_keys(order, args, launch);
  }
}

}  // namespace catena::gpu
