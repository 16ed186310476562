// Elements as ordered unsigned keys on the device; see device/ordered_key.h.
#pragma once

#include "backends/cuda/sort/sort.h"

#ifndef CATENA_FN
#define CATENA_FN __host__ __device__ inline
#endif
#include "device/ordered_key.h"

// Runs the statement with `O` as the order of an Order code; for use in launch functions.
#define CATENA_ORDER_CASE(code, type, ...) \
  case ::catena::gpu::Order::code: {       \
    using O = ::catena::order::type;       \
    __VA_ARGS__;                           \
    break;                                 \
  }
#define CATENA_ORDER_SWITCH(order_code, ...)           \
  switch (order_code) {                                \
    CATENA_ORDER_CASE(kU8, OrderedU8, __VA_ARGS__)     \
    CATENA_ORDER_CASE(kI8, OrderedI8, __VA_ARGS__)     \
    CATENA_ORDER_CASE(kU16, OrderedU16, __VA_ARGS__)   \
    CATENA_ORDER_CASE(kI16, OrderedI16, __VA_ARGS__)   \
    CATENA_ORDER_CASE(kU32, OrderedU32, __VA_ARGS__)   \
    CATENA_ORDER_CASE(kI32, OrderedI32, __VA_ARGS__)   \
    CATENA_ORDER_CASE(kU64, OrderedU64, __VA_ARGS__)   \
    CATENA_ORDER_CASE(kI64, OrderedI64, __VA_ARGS__)   \
    CATENA_ORDER_CASE(kF16, OrderedF16, __VA_ARGS__)   \
    CATENA_ORDER_CASE(kBf16, OrderedBF16, __VA_ARGS__) \
    CATENA_ORDER_CASE(kF32, OrderedF32, __VA_ARGS__)   \
    CATENA_ORDER_CASE(kF64, OrderedF64, __VA_ARGS__)   \
  }
