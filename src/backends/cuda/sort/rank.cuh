// Ranks of elements whose order is known at run time, one function for each size.
#pragma once

#include "backends/cuda/sort/ordered.cuh"

namespace catena::gpu {

__device__ inline uint8_t rank_of(Element order, uint8_t bits) {
  return order == Element::kUInt8 ? order::OrderedU8::rank(bits) : order::OrderedI8::rank(bits);
}
__device__ inline uint16_t rank_of(Element order, uint16_t bits) {
  switch (order) {
    case Element::kUInt16: return order::OrderedU16::rank(bits);
    case Element::kInt16: return order::OrderedI16::rank(bits);
    case Element::kFloat16: return order::OrderedF16::rank(bits);
    default: return order::OrderedBF16::rank(bits);
  }
}
__device__ inline uint32_t rank_of(Element order, uint32_t bits) {
  switch (order) {
    case Element::kUInt32: return order::OrderedU32::rank(bits);
    case Element::kInt32: return order::OrderedI32::rank(bits);
    default: return order::OrderedF32::rank(bits);
  }
}
__device__ inline uint64_t rank_of(Element order, uint64_t bits) {
  switch (order) {
    case Element::kUInt64: return order::OrderedU64::rank(bits);
    case Element::kInt64: return order::OrderedI64::rank(bits);
    default: return order::OrderedF64::rank(bits);
  }
}

}  // namespace catena::gpu
