// Parameters of a kernel written as a C++ lambda, other than elements: raw arrays and the position
// in the loop.
#pragma once

#include <concepts>
#include <cstdint>

#include "catena/array/array.h"

namespace catena {

// The position in the loop: element i (C order) of n. For an element-wise lambda's first parameter.
struct KernelIndex {
  int64_t i, n;
};

// An argument that does not broadcast: indexed by a C-order linear index or by one index per
// dimension, like `raw` arguments in CUDA source.
template <class T>
class RawView {
 public:
  explicit RawView(const Array& array)
      : data_(static_cast<char*>(array.raw_data())),
        size_(array.size()),
        contiguous_(array.is_contiguous()),
        shape_(array.shape()),
        strides_(array.strides()) {}

  // Elements, extents, and strides in elements.
  int64_t size() const { return size_; }
  const Shape& shape() const { return shape_; }
  const Strides& strides() const { return strides_; }
  template <std::integral I>
  T& operator[](I linear) const {
    if (contiguous_) return reinterpret_cast<T*>(data_)[linear];
    int64_t offset = 0, rest = int64_t(linear);
    for (int d = shape_.ndim() - 1; d >= 0; --d) {
      offset += rest % shape_[size_t(d)] * strides_[size_t(d)];
      rest /= shape_[size_t(d)];
    }
    return *reinterpret_cast<T*>(data_ + offset);
  }
  template <std::integral I>
  T& operator[](const I* index) const {
    int64_t offset = 0;
    for (int d = 0; d < shape_.ndim(); ++d) offset += int64_t(index[d]) * strides_[size_t(d)];
    return *reinterpret_cast<T*>(data_ + offset);
  }

 private:
  char* data_;
  int64_t size_;
  bool contiguous_;
  Shape shape_;
  Strides strides_;
};

}  // namespace catena
