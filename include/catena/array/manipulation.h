// Joining, splitting and rearranging arrays. Views where NumPy gives views.
#pragma once

#include <concepts>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "catena/array/array.h"

namespace catena {

// The methods of Array, as functions: views where the strides allow one.
Array reshape(const Array& a, const Shape& shape);
Array ravel(const Array& a);
Array transpose(const Array& a, const Axes& axes = {});
Array swapaxes(const Array& a, Axis axis1, Axis axis2);
// Moves `axis` to the end / to `start`, as NumPy's rollaxis.
Array rollaxis(const Array& a, Axis axis, int64_t start = 0);
// Each axis of `sources` to the place of the same number in `destinations`; the others keep their
// order. ValueError for lists of different lengths and for an axis twice.
Array moveaxis(const Array& a, const AxisList& sources, const AxisList& destinations);
Array squeeze(const Array& a, const AxisList& axes = none);
// Axes of extent 1 at these places of the result; none: a itself.
Array expand_dims(const Array& a, const AxisList& axes);
Array broadcast_to(const Array& a, const Shape& shape);
// All arrays as views of their common shape, read-only where elements repeat.
std::vector<Array> broadcast_arrays(std::span<const Array> arrays);
inline std::vector<Array> broadcast_arrays(std::initializer_list<Array> arrays) {
  return broadcast_arrays(std::span(arrays.begin(), arrays.size()));
}
// The same with the attributes of NumPy's broadcast object.
class Broadcast {
 public:
  // Throws ShapeError when the shapes do not fit.
  explicit Broadcast(std::span<const Array> arrays) : values_(broadcast_arrays(arrays)) {}
  Broadcast(std::initializer_list<Array> arrays)
      : Broadcast(std::span(arrays.begin(), arrays.size())) {}
  Shape shape() const { return values_.empty() ? Shape{} : values_.front().shape(); }
  int ndim() const { return shape().ndim(); }
  int64_t size() const { return element_count(shape()); }
  const std::vector<Array>& values() const { return values_; }  // views

 private:
  std::vector<Array> values_;
};
// Views with axes of extent 1 added where there are fewer: () -> (1).
Array atleast_1d(const Array& a);
// () -> (1, 1), (n) -> (1, n).
Array atleast_2d(const Array& a);
// () -> (1, 1, 1), (n) -> (1, n, 1), (m, n) -> (m, n, 1).
Array atleast_3d(const Array& a);
// The same of several arrays: atleast_2d({a, b, c}).
std::vector<Array> atleast_1d(std::initializer_list<Array> arrays);
std::vector<Array> atleast_2d(std::initializer_list<Array> arrays);
std::vector<Array> atleast_3d(std::initializer_list<Array> arrays);
std::vector<Array> atleast_1d(std::span<const Array> arrays);
std::vector<Array> atleast_2d(std::span<const Array> arrays);
std::vector<Array> atleast_3d(std::span<const Array> arrays);

// The elements as a vector, and as a matrix with a row for each entry of the first axis (ShapeError
// for a 0-d array); an array that is one already comes back as it is. As reshape: views where the
// strides allow it.
Array as_vec(const Array& a);
Array as_mat(const Array& a);

// Arrays that agree in all axes but `axis`, one after the other; dtypes are promoted. `none`: all
// of them flattened. `out`: shape of the result; it is cast.
Array concatenate(std::span<const Array> arrays, OptionalAxis axis = 0, const Out& out = {});
Array concatenate(std::initializer_list<Array> arrays, OptionalAxis axis = 0, const Out& out = {});
// Along a new axis.
Array stack(std::span<const Array> arrays, Axis axis = 0, const Out& out = {});
Array stack(std::initializer_list<Array> arrays, Axis axis = 0, const Out& out = {});
// Rows of blocks side by side, the rows one below the other: the last axis joins the blocks of a
// row, the second last the rows. Blocks with fewer axes get ones before their own.
Array block(const std::vector<std::vector<Array>>& rows);
Array vstack(std::span<const Array> arrays);
Array hstack(std::span<const Array> arrays);
Array dstack(std::span<const Array> arrays);
// 1-d arrays as columns beside the columns of 2-d ones; other numbers of axes are a ShapeError.
Array column_stack(std::span<const Array> arrays);
inline Array vstack(std::initializer_list<Array> arrays) {
  return vstack(std::span(arrays.begin(), arrays.size()));
}
inline Array hstack(std::initializer_list<Array> arrays) {
  return hstack(std::span(arrays.begin(), arrays.size()));
}
inline Array dstack(std::initializer_list<Array> arrays) {
  return dstack(std::span(arrays.begin(), arrays.size()));
}
inline Array column_stack(std::initializer_list<Array> arrays) {
  return column_stack(std::span(arrays.begin(), arrays.size()));
}
// b after a along `axis`; without one both flattened.
Array append(const Array& a, const Array& b, OptionalAxis axis = none);

// Views: equal parts (ShapeError if the extent does not divide), or cuts at the given positions.
// A number is one of parts and a list in braces holds positions, also a list of one: split(x, 400)
// gives 400 parts, split(x, {400}) the two before and after position 400.
std::vector<Array> split(const Array& a, int64_t sections, Axis axis = 0);
std::vector<Array> split(const Array& a, const Axes& positions, Axis axis = 0);
inline std::vector<Array> split(const Array& a, std::initializer_list<int64_t> positions,
                                Axis axis = 0) {
  return split(a, Axes(positions), axis);
}
// As split, but the first extent % sections parts are one longer.
std::vector<Array> array_split(const Array& a, int64_t sections, Axis axis = 0);
std::vector<Array> array_split(const Array& a, const Axes& positions, Axis axis = 0);
inline std::vector<Array> array_split(const Array& a, std::initializer_list<int64_t> positions,
                                      Axis axis = 0) {
  return array_split(a, Axes(positions), axis);
}
// Along axis 0 (at least 2-d), axis 1 (1-d: axis 0), axis 2 (at least 3-d).
std::vector<Array> vsplit(const Array& a, int64_t sections);
std::vector<Array> vsplit(const Array& a, const Axes& positions);
inline std::vector<Array> vsplit(const Array& a, std::initializer_list<int64_t> positions) {
  return vsplit(a, Axes(positions));
}
std::vector<Array> hsplit(const Array& a, int64_t sections);
std::vector<Array> hsplit(const Array& a, const Axes& positions);
inline std::vector<Array> hsplit(const Array& a, std::initializer_list<int64_t> positions) {
  return hsplit(a, Axes(positions));
}
std::vector<Array> dsplit(const Array& a, int64_t sections);
std::vector<Array> dsplit(const Array& a, const Axes& positions);
inline std::vector<Array> dsplit(const Array& a, std::initializer_list<int64_t> positions) {
  return dsplit(a, Axes(positions));
}

// What pad() puts around an array, with NumPy's names.
enum class PadMode : uint8_t {
  kConstant,
  kEdge,       // a a | a b c | c c
  kReflect,    // c b | a b c | b a
  kSymmetric,  // b a | a b c | c b
  kWrap,       // b c | a b c | a b
};
// Numbers of elements before and after, for each axis; one pair stands for every axis.
using PadWidths = std::vector<std::pair<int64_t, int64_t>>;
// Extends the axes on both sides. kConstant fills with `value`, which the dtype must hold
// (ValueError); the other modes refuse to extend an empty axis (ValueError).
Array pad(const Array& a, const PadWidths& widths, PadMode mode = PadMode::kConstant,
          const Scalar& value = 0);
Array pad(const Array& a, int64_t width, PadMode mode = PadMode::kConstant,
          const Scalar& value = 0);

// The array repeated along each axis; repetitions of 1 are put before a shorter list.
Array tile(const Array& a, const Shape& repetitions);
// Every element `count` times, along an axis or of the flattened array; or element i counts[i]
// times.
Array repeat(const Array& a, int64_t count, Axis axis);
Array repeat(const Array& a, int64_t count);
Array repeat(const Array& a, const std::vector<int64_t>& counts, OptionalAxis axis = none);
// Counts from an array of integers, which is read: waits once for a GPU.
Array repeat(const Array& a, const Array& counts, OptionalAxis axis = none);
// Elements of the flattened array, again from the start when there are too few, in a new shape.
Array resize(const Array& a, const Shape& shape);
// Without the given positions of the axis (negative ones count from the end); without an axis, of
// the flattened array.
Array delete_at(const Array& a, const std::vector<int64_t>& positions, OptionalAxis axis = none);
template <std::integral T>
Array delete_at(const Array& a, T position, OptionalAxis axis = none) {
  return delete_at(a, std::vector<int64_t>{static_cast<int64_t>(position)}, axis);
}
// With values (cast to a's dtype) before the element at `position` of the axis, of extent n: -n to
// n, n appends. Values broadcast to the other axes and have the axis itself as NumPy has it: along
// their first axis for one position. Without an axis the array is flattened. IndexError,
// ShapeError.
Array insert(const Array& a, int64_t position, const Operand& values, OptionalAxis axis = none);
// One value before each position, all of them positions of `a`; for one position as above, but with
// the values in the axes of `a`.
Array insert(const Array& a, const std::vector<int64_t>& positions, const Operand& values,
             OptionalAxis axis = none);
Array roll(const Array& a, int64_t shift, Axis axis);
Array roll(const Array& a, int64_t shift);  // the flattened array, in its old shape
// Each axis by its shift; shifts of an axis given twice add up.
Array roll(const Array& a, const Axes& shifts, const Axes& axes);
Array flip(const Array& a, const AxisList& axes = none);
Array flipud(const Array& a);
Array fliplr(const Array& a);
// By quarter turns (one without a number) from the first towards the second of two axes.
Array rot90(const Array& a, std::optional<int64_t> times = {}, const Axes& axes = {0, 1});

}  // namespace catena
