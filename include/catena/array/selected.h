// Indices that select by arrays, and their results: x(rows), x[mask].
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>
#include <vector>

#include "catena/array/array_class.h"

namespace catena {

// One entry of an index that may select by arrays: an integer, a slice, newaxis, ellipsis, an
// array of integer positions (negative ones count from the end), a bool array (selects where it is
// true and indexes as many axes as it has), or a host list of positions.
class AnyIndex {
 public:
  template <class T>
  requires std::is_constructible_v<Index, const T&> AnyIndex(const T& basic) : basic_(basic) {}
  AnyIndex(const Array& positions);  // an undefined array is a ValueError
  AnyIndex(const std::vector<int64_t>& positions);
  template <std::integral I>
  requires(!std::same_as<I, bool>) AnyIndex(const std::vector<I>& positions)
      : AnyIndex(std::vector<int64_t>(positions.begin(), positions.end())) {}

  // The content: a basic index, or an array of positions or a mask.
  const Index& basic() const { return basic_; }
  bool is_array() const { return array_.defined(); }
  const Array& array() const { return array_; }
  bool on_host() const { return on_host_; }  // a list, copied to the device of the indexed array

 private:
  Index basic_;
  Array array_;
  bool on_host_ = false;
};

// The result of x(mask), x(rows) and x[mask]: a copy of the selected elements. A temporary also
// writes back to the elements of x, as NumPy's x[mask] += 1 does:
//
//   x(mask) += 1;  x(mask).fill(0);  x(rows, 0).assign(values);
//
// (values of repeated positions do not add up: add_at does that). In a variable it is a separate
// array and x does not change: Array y = x(mask); y += 1. Such a variable declared with auto keeps
// x alive.
class Selected : public Array {
 public:
  Selected(Array elements, Array source, std::vector<AnyIndex> indices)
      : Array(std::move(elements)), source_(std::move(source)), indices_(std::move(indices)) {}
  Selected(const Selected&) = default;
  Selected(Selected&&) noexcept = default;
  ~Selected() = default;
  Selected& operator=(const Selected&) & = default;
  Selected& operator=(Selected&&) & noexcept = default;
  Selected& operator=(const Array& other) & {
    Array::operator=(other);
    source_ = Array();
    indices_.clear();
    return *this;
  }
  void operator=(const Array&) && = delete;  // x(mask) = y: use x(mask).assign(y)
  void operator=(const Selected&) && = delete;

  // Write into the selected elements, as Array::assign and Array::fill.
  void assign(const Array& values) const& { Array::assign(values); }
  void assign(const Scalar& value) const& { Array::assign(value); }
  void fill(const Scalar& value) const& { Array::fill(value); }
  // Broadcasts, casts and throws as index_put does.
  void assign(const Array& values) &&;
  void assign(const Scalar& value) &&;
  void fill(const Scalar& value) &&;
  // Writes the copy back to the selected elements, after an in-place operation on it.
  void write_back() const;

 private:
  Array source_;  // undefined when another array was assigned to this variable
  std::vector<AnyIndex> indices_;
};

template <class... I>
Selected Array::operator()(std::initializer_list<int64_t> positions, I&&... indices) const {
  return select({AnyIndex(std::vector<int64_t>(positions)), AnyIndex(std::forward<I>(indices))...});
}

}  // namespace catena
