// Elements as ordered unsigned keys on the device; see device/ordered_key.h.
#pragma once

#include "backends/cuda/sort/sort.h"

#ifndef CATENA_FN
#define CATENA_FN __host__ __device__ inline
#endif
#include "device/ordered_key.h"

// Runs the statement with `O` as the order of a dtype; for use in launch functions.
#define CATENA_ORDER_CASE(code, type, ...) \
  case ::catena::gpu::Element::code: {     \
    using O = ::catena::order::type;       \
    __VA_ARGS__;                           \
    break;                                 \
  }
#define CATENA_ORDER_SWITCH(order_code, ...)               \
  switch (order_code) {                                    \
    CATENA_ORDER_CASE(kUInt8, OrderedU8, __VA_ARGS__)      \
    CATENA_ORDER_CASE(kInt8, OrderedI8, __VA_ARGS__)       \
    CATENA_ORDER_CASE(kUInt16, OrderedU16, __VA_ARGS__)    \
    CATENA_ORDER_CASE(kInt16, OrderedI16, __VA_ARGS__)     \
    CATENA_ORDER_CASE(kUInt32, OrderedU32, __VA_ARGS__)    \
    CATENA_ORDER_CASE(kInt32, OrderedI32, __VA_ARGS__)     \
    CATENA_ORDER_CASE(kUInt64, OrderedU64, __VA_ARGS__)    \
    CATENA_ORDER_CASE(kInt64, OrderedI64, __VA_ARGS__)     \
    CATENA_ORDER_CASE(kFloat16, OrderedF16, __VA_ARGS__)   \
    CATENA_ORDER_CASE(kBFloat16, OrderedBF16, __VA_ARGS__) \
    CATENA_ORDER_CASE(kFloat32, OrderedF32, __VA_ARGS__)   \
    CATENA_ORDER_CASE(kFloat64, OrderedF64, __VA_ARGS__)   \
    default: break;                                        \
  }
