// Integers and bool.
#include "backends/cuda/sort_keys.cuh"

// Runs the statement with `T` as the type of an integer order.
#define CATENA_INT_CASE(code, type, ...) \
  case Order::code: {                    \
    using T = type;                      \
    __VA_ARGS__;                         \
  }
#define CATENA_INT_SWITCH(order, ...)            \
  switch (order) {                               \
    CATENA_INT_CASE(kU8, uint8_t, __VA_ARGS__)   \
    CATENA_INT_CASE(kI8, int8_t, __VA_ARGS__)    \
    CATENA_INT_CASE(kU16, uint16_t, __VA_ARGS__) \
    CATENA_INT_CASE(kI16, int16_t, __VA_ARGS__)  \
    CATENA_INT_CASE(kU32, uint32_t, __VA_ARGS__) \
    CATENA_INT_CASE(kI32, int32_t, __VA_ARGS__)  \
    CATENA_INT_CASE(kU64, uint64_t, __VA_ARGS__) \
    CATENA_INT_CASE(kI64, int64_t, __VA_ARGS__)  \
    default:                                     \
      break;                                     \
  }

namespace catena::gpu {

size_t sort_keys_scratch_bytes(Order order, int64_t count) {
  CATENA_INT_SWITCH(order, return keys_scratch_bytes<T>(count));
  return float_keys_scratch_bytes(order, count);
}

cudaError_t launch_sort_keys(Order order, const SortKeysArgs& args, const Launch& launch) {
  CATENA_INT_SWITCH(order, return run_sort_keys<T>(args, launch));
  return launch_float_keys(order, args, launch);
}

}  // namespace catena::gpu
