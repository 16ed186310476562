// Shapes and byte strides: short vectors of int64 that live inside the array object.
#pragma once

#include <boost/container/small_vector.hpp>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

namespace catena {

// More dimensions than this are refused by every array constructor (CuPy's limit).
inline constexpr int kMaxDims = 24;

// A short list of int64: up to 5 without a heap allocation.
class Dims : public boost::container::small_vector<int64_t, 5> {
 public:
  using Base = boost::container::small_vector<int64_t, 5>;
  Dims() = default;
  Dims(std::initializer_list<int64_t> values) : Base(values) {}
  template <std::integral I>
  requires(!std::same_as<I, bool>) Dims(const std::vector<I>& values)
      : Base(values.begin(), values.end()) {}
  explicit Dims(std::span<const int64_t> values) : Base(values.begin(), values.end()) {}
  Dims(size_t count, int64_t value) : Base(count, value) {}
  template <class It>
  Dims(It first, It last) : Base(first, last) {}

  // The number of entries, and the entries.
  int ndim() const { return static_cast<int>(size()); }
  std::span<const int64_t> span() const { return {data(), size()}; }

  // Prints to_string(dims).
  friend std::ostream& operator<<(std::ostream& os, const Dims& dims);
};

// Extents of axes, bytes between neighbours along an axis, and numbers of axes.
using Shape = Dims;
using Strides = Dims;
using Axes = Dims;

// "(2, 3)", "(5,)", "()": as Python prints a tuple.
std::string to_string(const Dims& dims);

// Number of elements; 1 for a 0-d shape. Throws ShapeError on a negative extent or overflow.
int64_t element_count(const Shape& shape);
// C-order byte strides.
Strides contiguous_strides(const Shape& shape, int64_t itemsize);
// NumPy broadcasting of two shapes; ShapeError for those that do not fit.
Shape broadcast_shapes(const Shape& a, const Shape& b);
// Maps a possibly negative axis into [0, ndim); throws IndexError.
int normalize_axis(int64_t axis, int ndim);
// The same for a list, sorted ascending, duplicates refused (ValueError). An empty list means all
// axes.
Axes normalize_axes(const Axes& axes, int ndim);
// The same for callers without an EntryScope: the errors name `who`.
Shape broadcast_shapes(const char* who, const Shape& a, const Shape& b);
int normalize_axis(const char* who, int64_t axis, int ndim);
Axes normalize_axes(const char* who, const Axes& axes, int ndim);

}  // namespace catena
