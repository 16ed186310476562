// Integers of 8 and 16 bits, and bool.
#include "backends/cuda/sort/sort_keys.cuh"

namespace catena::gpu {

size_t narrow_keys_scratch_bytes(Element order, int64_t count) {
  switch (order) {
    case Element::kUInt8: return keys_scratch_bytes<uint8_t>(count);
    case Element::kInt8: return keys_scratch_bytes<int8_t>(count);
    case Element::kUInt16: return keys_scratch_bytes<uint16_t>(count);
    default: return keys_scratch_bytes<int16_t>(count);
  }
}

cudaError_t launch_narrow_keys(Element order, const SortKeysArgs& args, const Launch& launch) {
  switch (order) {
    case Element::kUInt8: return run_sort_keys<uint8_t>(args, launch);
    case Element::kInt8: return run_sort_keys<int8_t>(args, launch);
    case Element::kUInt16: return run_sort_keys<uint16_t>(args, launch);
    default: return run_sort_keys<int16_t>(args, launch);
  }
}

}  // namespace catena::gpu
