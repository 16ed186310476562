// Elements of host arrays as C++ code likes them: an accessor over any layout, in the manner of
// std::mdspan, and iteration. (Contiguous arrays: Array::span.)
#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <type_traits>

#include "catena/array/array.h"

namespace catena {

// Elements of type T (const T: for reading) of an N-dimensional array on a CPU device.
//
//   auto m = host_view<float, 2>(a);
//   for (int64_t i = 0; i < m.extent(0); ++i) m(i, i) = 1;
//
// It holds the array, so the memory stays; it is as cheap as a pointer and 2 N numbers. Positions
// count from 0 to extent - 1. They are checked in programs built without NDEBUG (IndexError) and by
// at(), not otherwise. Writes are not seen by autograd: call Array::note_write after them.
template <class T, int N>
class HostView {
  static_assert(N >= 0 && N <= kMaxDims);
  using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;

 public:
  // ShapeError unless the array has N axes, DtypeError unless it holds T, DeviceError for a GPU,
  // ValueError when it is read-only and T is not const.
  explicit HostView(const Array& a) : array_(a) {
    check_defined("host_view", a);
    CATENA_CHECK(DtypeError, dtype_of<std::remove_const_t<T>> == a.dtype(),
                 "host_view: the array holds ", a.dtype(), ", asked for ",
                 dtype_of<std::remove_const_t<T>>);
    CATENA_CHECK(DeviceError, a.device().is_cpu(), "host_view: the array of shape ", a.shape(),
                 " is on ", a.device(), "; copy it with to_cpu() first");
    CATENA_CHECK(ShapeError, a.ndim() == N, "host_view: an array of shape ", a.shape(),
                 ", expected ", N, " axes");
    if constexpr (!std::is_const_v<T>) check_writable("host_view", a);
    data_ = reinterpret_cast<Byte*>(a.data<std::remove_const_t<T>>());
    for (size_t i = 0; i < N; ++i) {
      extents_[i] = a.shape()[i];
      strides_[i] = a.strides()[i];
    }
  }

  // Number of axes, extents, strides in bytes, number of elements, and the array that the view
  // keeps.
  static constexpr int rank() { return N; }
  int64_t extent(int axis) const { return extents_[static_cast<size_t>(axis)]; }
  int64_t stride_bytes(int axis) const { return strides_[static_cast<size_t>(axis)]; }
  int64_t size() const { return array_.size(); }
  const Array& array() const { return array_; }

  // The element at one position for each axis; positions are checked in debug builds only.
  template <std::integral... I>
  requires(sizeof...(I) == N) T& operator()(I... positions) const {
#ifndef NDEBUG
    check({static_cast<int64_t>(positions)...});
#endif
    return element({static_cast<int64_t>(positions)...});
  }
  // Always checked.
  template <std::integral... I>
  requires(sizeof...(I) == N) T& at(I... positions) const {
    check({static_cast<int64_t>(positions)...});
    return element({static_cast<int64_t>(positions)...});
  }

  // All elements in C order.
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = std::remove_const_t<T>;
    using difference_type = std::ptrdiff_t;
    using pointer = T*;
    using reference = T&;

    Iterator() = default;
    Iterator(const HostView* view, int64_t index) : view_(view), index_(index) {
      if (view) at_ = view->data_;
    }
    T& operator*() const { return *reinterpret_cast<T*>(at_); }
    T* operator->() const { return reinterpret_cast<T*>(at_); }
    Iterator& operator++() {
      ++index_;
      for (size_t axis = N; axis-- > 0;) {
        at_ += view_->strides_[axis];
        if (++position_[axis] < view_->extents_[axis]) break;
        at_ -= position_[axis] * view_->strides_[axis];
        position_[axis] = 0;
      }
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    // The iterator's position.
    const std::array<int64_t, N>& position() const { return position_; }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.index_ == b.index_; }

   private:
    const HostView* view_ = nullptr;
    Byte* at_ = nullptr;
    int64_t index_ = 0;  // in C order
    std::array<int64_t, N> position_{};
  };
  // Valid while the view lives.
  Iterator begin() const { return Iterator(this, 0); }
  Iterator end() const { return Iterator(this, size()); }

 private:
  void check(const std::array<int64_t, N>& positions) const {
    for (size_t i = 0; i < N; ++i) {
      CATENA_CHECK(IndexError, positions[i] >= 0 && positions[i] < extents_[i],
                   "HostView: position ", positions[i], " of axis ", i, " of shape ",
                   array_.shape(), ", expected 0 to ", extents_[i] - 1);
    }
  }
  T& element(const std::array<int64_t, N>& positions) const {
    Byte* at = data_;
    for (size_t i = 0; i < N; ++i) at += positions[i] * strides_[i];
    return *reinterpret_cast<T*>(at);
  }

  Array array_;
  Byte* data_;
  std::array<int64_t, N> extents_, strides_;
};

// HostView<T, N>(a).
template <class T, int N>
HostView<T, N> host_view(const Array& a) {
  return HostView<T, N>(a);
}

// The sub-arrays along the first axis, as Python iterates: for (const Array& row : rows(a)). Views,
// on any device.
class Rows {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Array;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = Array;

    Iterator(const Array* array, int64_t index) : array_(array), index_(index) {}
    Array operator*() const { return (*array_)[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    void operator++(int) { ++index_; }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.index_ == b.index_; }

   private:
    const Array* array_;
    int64_t index_;
  };
  explicit Rows(const Array& a) : array_(a), length_(a.length()) {}
  // The rows along the first axis, each a view.
  Iterator begin() const { return {&array_, 0}; }
  Iterator end() const { return {&array_, length_}; }

 private:
  Array array_;
  int64_t length_;
};

// ShapeError for a 0-d array.
inline Rows rows(const Array& a) { return Rows(a); }

}  // namespace catena
