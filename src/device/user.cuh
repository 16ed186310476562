// Operands and offsets for the texts of users' element-wise and reduction kernels. NVRTC only.
#pragma once

#include "device/args.h"
#include "device/prelude.cuh"

namespace catena {
namespace jit {

struct UserIndex {
  long long count;
  __device__ long long size() const { return count; }
};

// Byte offsets of all operands at element i (C order).
template <int N, int D>
CATENA_FN void user_offsets(const UserArgs<N, D>& a, int64_t i, int64_t (&offset)[N]) {
  if (D == 1 || a.ndim == 1) {
#pragma unroll
    for (int k = 0; k < N; ++k) offset[k] = i * a.stride[0][k];
    return;
  }
#pragma unroll
  for (int k = 0; k < N; ++k) offset[k] = 0;
  const bool small = a.size < 0x80000000ll;
#pragma unroll 1
  for (int d = 0; d < a.ndim; ++d) {
    int64_t at;
    if (d + 1 == a.ndim) {
      at = i;
    } else if (small) {
      uint32_t remainder;
      i = divide(uint32_t(i), a.divider[d], remainder);
      at = remainder;
    } else {
      at = i % a.extent[d];
      i /= a.extent[d];
    }
#pragma unroll
    for (int k = 0; k < N; ++k) offset[k] += at * a.stride[d][k];
  }
}

template <class S, int N, int D>
CATENA_FN S user_load(const UserArgs<N, D>& a, int k, int64_t offset) {
  if ((a.immediate >> k) & 1) return from_bits<S>(a.value[k]);
  return *reinterpret_cast<const S*>(static_cast<const char*>(a.pointer[k]) + offset);
}
// Four elements from `first` on of operand k, which are contiguous and aligned, or a number.
template <class S>
struct __align__(sizeof(S) * 4 < 16 ? sizeof(S) * 4 : 16) UserFour {
  S value[4];
};
template <class S, int N, int D>
CATENA_FN UserFour<S> user_load_four(const UserArgs<N, D>& a, int k, int64_t offset,
                                     int64_t first) {
  const S number = from_bits<S>(a.value[k]);
  UserFour<S> four = {number, number, number, number};
  // No other branch, so that loads of all operands are in flight together.
  if (!((a.immediate >> k) & 1))
    four = *reinterpret_cast<const UserFour<S>*>(static_cast<const char*>(a.pointer[k]) + offset +
                                                 first * int64_t(sizeof(S)));
  return four;
}
template <class S, int N, int D>
CATENA_FN S& user_place(const UserArgs<N, D>& a, int k, int64_t offset) {
  return *reinterpret_cast<S*>(static_cast<char*>(a.pointer[k]) + offset);
}

// An element of a 16-bit array, read and written as float.
template <class S>
struct NarrowReference {
  S* place;
  __device__ operator float() const { return to_float(*place); }
  __device__ const NarrowReference& operator=(float x) const {
    *place = Narrow<S>::from(x);
    return *this;
  }
  __device__ const NarrowReference& operator=(const NarrowReference& x) const {
    *place = *x.place;
    return *this;
  }
  __device__ const NarrowReference& operator+=(float x) const { return *this = float(*this) + x; }
  __device__ const NarrowReference& operator-=(float x) const { return *this = float(*this) - x; }
  __device__ const NarrowReference& operator*=(float x) const { return *this = float(*this) * x; }
  __device__ const NarrowReference& operator/=(float x) const { return *this = float(*this) / x; }
};
template <class S>
struct RawElement {
  typedef S& type;
  static CATENA_FN S& at(S* p) { return *p; }
};
template <>
struct RawElement<Half> {
  typedef NarrowReference<Half> type;
  static CATENA_FN type at(Half* p) {
    type r = {p};
    return r;
  }
};
template <>
struct RawElement<BFloat16> {
  typedef NarrowReference<BFloat16> type;
  static CATENA_FN type at(BFloat16* p) {
    type r = {p};
    return r;
  }
};

// A raw argument: indexed by a linear index in C order, or by one index for each dimension.
template <class S>
class RawArray {
 public:
  __device__ explicit RawArray(const UserRaw& raw) : raw_(raw) {}
  __device__ long long size() const { return raw_.size; }
  __device__ const int64_t* shape() const { return raw_.shape; }
  __device__ const int64_t* strides() const { return raw_.stride; }
  __device__ typename RawElement<S>::type at(int64_t linear) const {
    int64_t offset = linear * int64_t(sizeof(S));
    if (!raw_.contiguous) {
      offset = 0;
      for (int d = raw_.ndim - 1; d >= 0; --d) {
        offset += linear % raw_.shape[d] * raw_.stride[d];
        linear /= raw_.shape[d];
      }
    }
    return RawElement<S>::at(reinterpret_cast<S*>(static_cast<char*>(raw_.data) + offset));
  }
  template <class Index>
  __device__ typename RawElement<S>::type at(const Index* index) const {
    int64_t offset = 0;
    for (int d = 0; d < raw_.ndim; ++d) offset += int64_t(index[d]) * raw_.stride[d];
    return RawElement<S>::at(reinterpret_cast<S*>(static_cast<char*>(raw_.data) + offset));
  }
  template <class Index>
  __device__ typename RawElement<S>::type operator[](Index index) const {
    return at(index);
  }

 private:
  const UserRaw& raw_;
};

}  // namespace jit
}  // namespace catena
