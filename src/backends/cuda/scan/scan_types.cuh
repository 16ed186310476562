// Types and operations of the scan kernels.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <iterator>

#include "backends/cuda/scan/scan.h"
#include "device/compute_type.h"

namespace catena::gpu {

// The type in which elements of T accumulate.
template <class T>
struct RunningType : FloatCompute<T> {};
template <>
struct RunningType<uint64_t> {
  using type = uint64_t;
};

template <class A, bool kProduct>
struct Combine {
  __host__ __device__ A operator()(A a, A b) const { return kProduct ? a * b : a + b; }
};

__device__ inline uint64_t widen_integer(const void* data, Element type, int64_t i) {
  switch (type) {
    case Element::kBool: return static_cast<const uint8_t*>(data)[i] != 0;
    case Element::kUInt8: return static_cast<const uint8_t*>(data)[i];
    case Element::kInt8: return uint64_t(int64_t(static_cast<const int8_t*>(data)[i]));
    case Element::kInt16: return uint64_t(int64_t(static_cast<const int16_t*>(data)[i]));
    case Element::kUInt16: return static_cast<const uint16_t*>(data)[i];
    case Element::kInt32: return uint64_t(int64_t(static_cast<const int32_t*>(data)[i]));
    default: return static_cast<const uint32_t*>(data)[i];
  }
}

// Reads narrow integers as 64 bits.
struct NarrowInput {
  using value_type = uint64_t;
  using reference = uint64_t;
  using pointer = void;
  using difference_type = std::ptrdiff_t;
  using iterator_category = std::random_access_iterator_tag;

  const void* data;
  Element type;
  int64_t at;

  __device__ uint64_t operator*() const { return widen_integer(data, type, at); }
  __device__ uint64_t operator[](int64_t i) const { return widen_integer(data, type, at + i); }
  __host__ __device__ NarrowInput operator+(int64_t i) const { return {data, type, at + i}; }
  __host__ __device__ NarrowInput& operator+=(int64_t i) {
    at += i;
    return *this;
  }
};

// Calls f(input, output pointer) with the types of a scan.
template <class F>
auto visit_scan(const ScanArgs& args, const F& f) {
  switch (args.type) {
    case Element::kFloat16:
      return f(static_cast<const __half*>(args.input), static_cast<__half*>(args.output));
    case Element::kBFloat16:
      return f(static_cast<const __nv_bfloat16*>(args.input),
               static_cast<__nv_bfloat16*>(args.output));
    case Element::kFloat32:
      return f(static_cast<const float*>(args.input), static_cast<float*>(args.output));
    case Element::kFloat64:
      return f(static_cast<const double*>(args.input), static_cast<double*>(args.output));
    case Element::kInt64:
    case Element::kUInt64:
      return f(static_cast<const uint64_t*>(args.input), static_cast<uint64_t*>(args.output));
    default: return f(NarrowInput{args.input, args.type, 0}, static_cast<uint64_t*>(args.output));
  }
}

}  // namespace catena::gpu
