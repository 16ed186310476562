// Integers of 32 and 64 bits, and the dispatch on all types.
#include "backends/cuda/sort/sort_keys.cuh"

namespace catena::gpu {

size_t sort_keys_scratch_bytes(Element order, int64_t count) {
  switch (order) {
    case Element::kUInt8:
    case Element::kInt8:
    case Element::kUInt16:
    case Element::kInt16: return narrow_keys_scratch_bytes(order, count);
    case Element::kUInt32: return keys_scratch_bytes<uint32_t>(count);
    case Element::kInt32: return keys_scratch_bytes<int32_t>(count);
    case Element::kUInt64: return keys_scratch_bytes<uint64_t>(count);
    case Element::kInt64: return keys_scratch_bytes<int64_t>(count);
    default: return float_keys_scratch_bytes(order, count);
  }
}

cudaError_t launch_sort_keys(Element order, const SortKeysArgs& args, const Launch& launch) {
  switch (order) {
    case Element::kUInt8:
    case Element::kInt8:
    case Element::kUInt16:
    case Element::kInt16: return launch_narrow_keys(order, args, launch);
    case Element::kUInt32: return run_sort_keys<uint32_t>(args, launch);
    case Element::kInt32: return run_sort_keys<int32_t>(args, launch);
    case Element::kUInt64: return run_sort_keys<uint64_t>(args, launch);
    case Element::kInt64: return run_sort_keys<int64_t>(args, launch);
    default: return launch_float_keys(order, args, launch);
  }
}

}  // namespace catena::gpu
