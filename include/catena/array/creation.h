// Functions that make arrays. Without a device they use current_device(). Without a dtype zeros,
// ones, empty, eye, identity and tri use config().default_dtype (float64 as NumPy); the others the
// dtype of their numbers, where fractions become default_float() (config.h: the default dtype if it
// is a float).
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "catena/array/array.h"
#include "catena/array/options.h"
#include "catena/core/config.h"

namespace catena {

// C++ types that elements of arrays may have.
template <class T>
concept HostElement = kIsDtypeStorage<T>;
// Integers that may stand for the shape of a 1-d array.
template <class T>
concept HostLength = std::integral<T> && !std::same_as<T, bool>;

// New arrays of a shape: uninitialised, of zeros, of ones. One number is the shape of a 1-d array,
// zeros(3). ShapeError for a negative extent.
Array empty(const Shape& shape, const ArrayOptions& options = {});
Array zeros(const Shape& shape, const ArrayOptions& options = {});
Array ones(const Shape& shape, const ArrayOptions& options = {});
// Without a dtype: that of the value alone (bool, int64 or default_float()). A number that the
// dtype does not hold is a ValueError, here and in full_like.
Array full(const Shape& shape, const Scalar& value, const ArrayOptions& options = {});
template <HostLength T>
Array empty(T length, const ArrayOptions& options = {}) {
  return empty(Shape{static_cast<int64_t>(length)}, options);
}
template <HostLength T>
Array zeros(T length, const ArrayOptions& options = {}) {
  return zeros(Shape{static_cast<int64_t>(length)}, options);
}
template <HostLength T>
Array ones(T length, const ArrayOptions& options = {}) {
  return ones(Shape{static_cast<int64_t>(length)}, options);
}
template <HostLength T>
Array full(T length, const Scalar& value, const ArrayOptions& options = {}) {
  return full(Shape{static_cast<int64_t>(length)}, value, options);
}
// Shape, order of the axes in memory and, unless given, dtype and device of `like`.
Array empty_like(const Array& like, const ArrayOptions& options = {});
Array zeros_like(const Array& like, const ArrayOptions& options = {});
Array ones_like(const Array& like, const ArrayOptions& options = {});
Array full_like(const Array& like, const Scalar& value, const ArrayOptions& options = {});
// start, start + step, ... below stop; the number of elements is exact for integers. Without a
// dtype: int64 (uint64 beyond its range) when all numbers are integers, else default_float(). A
// zero step is a ValueError.
Array arange(const Scalar& start, const Scalar& stop, const Scalar& step = 1,
             const ArrayOptions& options = {});
Array arange(const Scalar& start, const Scalar& stop, const ArrayOptions& options);
Array arange(const Scalar& stop, const ArrayOptions& options = {});
// `count` evenly spaced numbers, by default 50; the endpoint is included by default. Integer dtypes
// round down; without a dtype default_float(), as the next ones.
Array linspace(double start, double stop, std::optional<int64_t> count = {}, YesNo endpoint = true,
               const ArrayOptions& options = {});
// The same and the distance of its numbers (NaN when there is none).
std::pair<Array, double> linspace_with_step(double start, double stop,
                                            std::optional<int64_t> count = {},
                                            YesNo endpoint = true,
                                            const ArrayOptions& options = {});
// base (10 without it) to the powers linspace(start, stop, ...).
Array logspace(double start, double stop, std::optional<int64_t> count = {}, YesNo endpoint = true,
               std::optional<double> base = {}, const ArrayOptions& options = {});
// `count` numbers from start to stop with one quotient; both of one sign and not 0 (ValueError).
Array geomspace(double start, double stop, std::optional<int64_t> count = {}, YesNo endpoint = true,
                const ArrayOptions& options = {});
// Ones on the k-th diagonal; without a number of columns as many as rows. ShapeError for negative
// extents.
Array eye(int64_t rows, std::optional<int64_t> columns = {}, int64_t k = 0,
          const ArrayOptions& options = {});
Array identity(int64_t n, const ArrayOptions& options = {});
// 1-d: a matrix with it on the k-th diagonal; 2-d: a view of that diagonal.
Array diag(const Array& v, int64_t k = 0);
// A matrix with the flattened v on the k-th diagonal.
Array diagflat(const Array& v, int64_t k = 0);
// Ones at and below the k-th diagonal; columns as for eye.
Array tri(int64_t rows, std::optional<int64_t> columns = {}, int64_t k = 0,
          const ArrayOptions& options = {});
// Copies of the last two axes with zeros above (tril) or below (triu) the k-th diagonal; a 1-d
// array counts as each row of a square matrix.
Array tril(const Array& a, int64_t k = 0);
Array triu(const Array& a, int64_t k = 0);
enum class MeshOrder : uint8_t { kXy, kIj };
// Coordinate matrices of 1-d arrays. kXy: the first two axes of the results are swapped, as in
// plots. `sparse`: views that broadcast to the full shape; else copies.
std::vector<Array> meshgrid(std::span<const Array> axes, MeshOrder order = MeshOrder::kXy,
                            bool sparse = false);
inline std::vector<Array> meshgrid(std::initializer_list<Array> axes,
                                   MeshOrder order = MeshOrder::kXy, bool sparse = false) {
  return meshgrid(std::span(axes.begin(), axes.size()), order, sparse);
}

// The array with another dtype or on another device, with at least `ndmin` axes (ones are put
// before its own). copy = false: the array itself, or a view, where nothing has to change.
Array array(const Array& a, const ArrayOptions& options = {}, YesNo copy = true, int ndmin = 0);
Array asarray(const Array& a, const ArrayOptions& options = {});
Array asanyarray(const Array& a, const ArrayOptions& options = {});
// The array itself when it is C-contiguous with the right dtype and device, else a copy; at least
// 1-d, as NumPy.
Array ascontiguousarray(const Array& a, const ArrayOptions& options = {});
// A copy on the current device, without gaps and with the axes in the same order in memory.
Array copy(const Array& a);

// Copies host values, C order: array(numbers, {2, 3}), array(numbers), array(rows of numbers). The
// elements have the dtype of T, or are cast, as by astype, to the dtype in the options.
template <HostElement T>
Array array(std::span<const T> values, const Shape& shape, const ArrayOptions& options = {});
template <HostElement T>
Array array(const std::vector<T>& values, const Shape& shape, const ArrayOptions& options = {});
template <HostElement T>
Array array(const std::vector<T>& values, const ArrayOptions& options = {}) {
  return array(values, Shape{int64_t(values.size())}, options);
}
template <HostElement T, size_t N>
Array array(const std::array<T, N>& values, const ArrayOptions& options = {}) {
  return array(std::span<const T>(values), Shape{int64_t(N)}, options);
}
// Rows of different length are a ShapeError, here and below.
template <HostElement T>
Array array(const std::vector<std::vector<T>>& rows, const ArrayOptions& options = {});
// Literals of any depth: array({{1.f, 2.f}, {3.f, 4.f}}), array({1, 2.5}), array(3). The dtype is
// that of the C++ types (promoted when they differ; config().default_dtype without a number), where
// double stands for default_float(); with a dtype in the options, numbers that it cannot hold are a
// ValueError.
template <HostElement T>
Array array(std::initializer_list<T> values, const ArrayOptions& options = {});
template <HostElement T>
Array array(std::initializer_list<std::initializer_list<T>> rows, const ArrayOptions& options = {});
// A number or a list of literals.
class Literal {
 public:
  template <HostElement T>
  Literal(T value) : value_(value), dtype_(dtype_of<T>) {}
  Literal(const Scalar& value) : value_(value), dtype_(value.default_dtype()) {}
  Literal(std::initializer_list<Literal> items) : items_(items), is_list_(true) {}

  // Whether it is a list, and its items; else the number and its dtype.
  bool is_list() const { return is_list_; }
  const std::vector<Literal>& items() const { return items_; }
  const Scalar& value() const { return value_; }
  Dtype dtype() const { return dtype_; }

 private:
  Scalar value_;
  Dtype dtype_ = Dtype::kFloat64;
  std::vector<Literal> items_;
  bool is_list_ = false;
};
// From a nested list; ShapeError when its lists differ in length.
Array array(const Literal& literal, const ArrayOptions& options = {});
// A 0-d array of one number.
Array scalar_array(const Scalar& value, const ArrayOptions& options = {});

// Foreign memory --------------------------------------------------------------------------------
// Views memory of `device` (a host address or a GPU's) in C order without a copy; the owner, when
// given, is kept until the last view goes. Work that was queued on GPU memory may still run then:
// an owner that frees it must know that (adopt_array does). ValueError when elements have no memory
// or are not aligned to their size. Elements of bool must be 0 or 1, as for Array::view.
Array borrow_array(void* data, const Shape& shape, Dtype dtype, Device device = cpu(0),
                   std::shared_ptr<void> owner = {});
// Views host memory of a program, typed: borrow_array(std::span(numbers), {2, 3}). ShapeError
// unless the shape has as many elements.
template <class T>
requires(!std::is_const_v<T>) Array
    borrow_array(std::span<T> values, const Shape& shape, std::shared_ptr<void> owner = {}) {
  CATENA_CHECK(ShapeError, element_count(shape) == int64_t(values.size()),
               "borrow_array: ", values.size(), " values do not fill shape ", shape);
  return borrow_array(values.data(), shape, dtype_of<T>, cpu(0), std::move(owner));
}
// Takes memory over: `deleter(data)` runs once, when the last view goes (at once if the call
// throws). GPU memory is deleted after the work of the streams that were current on the device at
// the call and at the release, for which the host waits; other streams are the caller's to wait
// for. The deleter must not throw.
Array adopt_array(void* data, const Shape& shape, Dtype dtype, Device device,
                  std::function<void(void*)> deleter);

// Copies raw host bytes of a dtype; the typed forms above end here.
Array array_from_bytes(const void* data, const Shape& shape, Dtype dtype,
                       const ArrayOptions& options);

namespace detail {

// Lists of lists, also of bool, into an array on cpu:0.
template <class T, class Rows>
Array array_of_rows(const Rows& rows) {
  const auto columns = rows.size() ? int64_t(rows.begin()->size()) : 0;
  const Array host = Array::uninitialized({int64_t(rows.size()), columns}, dtype_of<T>, cpu(0));
  T* out = static_cast<T*>(host.raw_data());
  for (const auto& row : rows) {
    CATENA_CHECK(ShapeError, int64_t(row.size()) == columns,
                 "array: rows of different length: ", columns, " and ", row.size());
    out = std::copy(row.begin(), row.end(), out);
  }
  return host;
}

inline ArrayOptions with_device(const ArrayOptions& options) {
  ArrayOptions result = options;
  result.device = options.device_or_current();
  return result;
}

// The options of literals of type T: double does not imply a dtype.
template <class T>
ArrayOptions literal_options(const ArrayOptions& options) {
  ArrayOptions result = with_device(options);
  if (std::same_as<T, double> && !result.dtype) result.dtype = default_float();
  return result;
}

template <class T>
void check_literals(std::initializer_list<T> values, const ArrayOptions& options) {
  if (!options.dtype) return;
  for (T value : values) check_fits("array", value, *options.dtype);
}

}  // namespace detail

template <HostElement T>
Array array(std::span<const T> values, const Shape& shape, const ArrayOptions& options) {
  CATENA_CHECK(ShapeError, element_count(shape) == int64_t(values.size()), "array: ", values.size(),
               " values do not fill shape ", shape);
  return array_from_bytes(values.data(), shape, dtype_of<T>, options);
}
template <HostElement T>
Array array(const std::vector<T>& values, const Shape& shape, const ArrayOptions& options) {
  if constexpr (std::same_as<T, bool>) {  // its elements are bits
    const std::vector<std::vector<bool>> rows{values};
    const Array host = detail::array_of_rows<T>(rows);
    CATENA_CHECK(ShapeError, element_count(shape) == host.size(), "array: ", host.size(),
                 " values do not fill shape ", shape);
    return array(host.reshape(shape), detail::with_device(options), false);
  } else {
    return array(std::span<const T>(values), shape, options);
  }
}
template <HostElement T>
Array array(const std::vector<std::vector<T>>& rows, const ArrayOptions& options) {
  return array(detail::array_of_rows<T>(rows), detail::with_device(options), false);
}
template <HostElement T>
Array array(std::initializer_list<T> values, const ArrayOptions& options) {
  detail::check_literals(values, options);
  return array(std::span<const T>(values.begin(), values.size()), Shape{int64_t(values.size())},
               detail::literal_options<T>(options));
}
template <HostElement T>
Array array(std::initializer_list<std::initializer_list<T>> rows, const ArrayOptions& options) {
  for (const auto& row : rows) detail::check_literals(row, options);
  return array(detail::array_of_rows<T>(rows), detail::literal_options<T>(options), false);
}

}  // namespace catena
