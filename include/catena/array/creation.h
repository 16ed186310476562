// Functions that make arrays. Without a device they use current_device(); without a dtype,
// config().default_dtype (float64 as NumPy).
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "catena/array/array.h"

namespace catena {

// dtype and device of a new array; either may be left out.
struct ArrayOptions {
  std::optional<Dtype> dtype;
  std::optional<Device> device;

  ArrayOptions() = default;
  ArrayOptions(Dtype d) : dtype(d) {}
  ArrayOptions(Device d) : device(d) {}
  ArrayOptions(Dtype d, Device on) : dtype(d), device(on) {}
};

// New arrays of a shape: uninitialised, of zeros, of ones.
Array empty(const Shape& shape, const ArrayOptions& options = {});
Array zeros(const Shape& shape, const ArrayOptions& options = {});
Array ones(const Shape& shape, const ArrayOptions& options = {});
// Without a dtype: that of the value alone (bool, int64 or float64).
Array full(const Shape& shape, const Scalar& value, const ArrayOptions& options = {});
// Shape, and unless given dtype and device, of `like`.
Array empty_like(const Array& like, const ArrayOptions& options = {});
Array zeros_like(const Array& like, const ArrayOptions& options = {});
Array ones_like(const Array& like, const ArrayOptions& options = {});
Array full_like(const Array& like, const Scalar& value, const ArrayOptions& options = {});
// start, start + step, ... below stop. Without a dtype: int64 when all numbers are integers, else
// float64. A zero step is a ValueError.
Array arange(const Scalar& start, const Scalar& stop, const Scalar& step = 1,
             const ArrayOptions& options = {});
Array arange(const Scalar& stop, const ArrayOptions& options = {});
// `count` evenly spaced numbers; endpoint included unless told otherwise. Integer dtypes round
// down.
Array linspace(double start, double stop, int64_t count = 50, bool endpoint = true,
               const ArrayOptions& options = {});
// The same and the distance of its numbers (NaN when there is none).
std::pair<Array, double> linspace_with_step(double start, double stop, int64_t count = 50,
                                            bool endpoint = true, const ArrayOptions& options = {});
// base to the powers linspace(start, stop, ...).
Array logspace(double start, double stop, int64_t count = 50, bool endpoint = true,
               double base = 10, const ArrayOptions& options = {});
// `count` numbers from start to stop with one quotient; both of one sign and not 0 (ValueError).
Array geomspace(double start, double stop, int64_t count = 50, bool endpoint = true,
                const ArrayOptions& options = {});
// Ones on the k-th diagonal. columns < 0: as many as rows.
Array eye(int64_t rows, int64_t columns = -1, int64_t k = 0, const ArrayOptions& options = {});
Array identity(int64_t n, const ArrayOptions& options = {});
// 1-d: a matrix with it on the k-th diagonal; 2-d: a view of that diagonal.
Array diag(const Array& v, int64_t k = 0);
// A matrix with the flattened v on the k-th diagonal.
Array diagflat(const Array& v, int64_t k = 0);
// Ones at and below the k-th diagonal. columns < 0: as many as rows.
Array tri(int64_t rows, int64_t columns = -1, int64_t k = 0, const ArrayOptions& options = {});
// Copies of the last two axes with zeros above (tril) or below (triu) the k-th diagonal; a 1-d
// array counts as each row of a square matrix.
Array tril(const Array& a, int64_t k = 0);
Array triu(const Array& a, int64_t k = 0);
enum class MeshOrder : uint8_t { kXy, kIj };
// Coordinate matrices of 1-d arrays. kXy: the first two axes of the results are swapped, as in
// plots. `sparse`: views that broadcast to the full shape; else copies.
std::vector<Array> meshgrid(std::span<const Array> axes, MeshOrder order = MeshOrder::kXy,
                            bool sparse = false);

// The array with another dtype or on another device, with at least `ndmin` axes (ones are put
// before its own). copy = false: the array itself, or a view, where nothing has to change.
Array array(const Array& a, const ArrayOptions& options = {}, bool copy = true, int ndmin = 0);
inline Array asarray(const Array& a, const ArrayOptions& options = {}) {
  return array(a, options, false);
}
inline Array asanyarray(const Array& a, const ArrayOptions& options = {}) {
  return array(a, options, false);
}
// The array itself when it is C-contiguous with the right dtype and device, else a copy; at least
// 1-d, as NumPy.
Array ascontiguousarray(const Array& a, const ArrayOptions& options = {});
// A C-contiguous copy on the current device.
Array copy(const Array& a);

// Copies host values, C order.
template <class T>
Array array(std::span<const T> values, const Shape& shape, std::optional<Device> device = {});
template <class T>
Array array(const std::vector<T>& values, const Shape& shape, std::optional<Device> device = {}) {
  return array(std::span<const T>(values), shape, device);
}
template <class T>
Array array(const std::vector<T>& values, std::optional<Device> device = {}) {
  return array(std::span<const T>(values), Shape{int64_t(values.size())}, device);
}
// 1-, 2- and 3-d literals: array({{1.f, 2.f}, {3.f, 4.f}}). Rows must have one length.
template <class T>
Array array(std::initializer_list<T> values, std::optional<Device> device = {}) {
  return array(std::span<const T>(values.begin(), values.size()), Shape{int64_t(values.size())},
               device);
}
template <class T>
Array array(std::initializer_list<std::initializer_list<T>> rows,
            std::optional<Device> device = {}) {
  std::vector<T> flat;
  const int64_t columns = rows.size() ? int64_t(rows.begin()->size()) : 0;
  for (const auto& row : rows) {
    CATENA_CHECK(ShapeError, int64_t(row.size()) == columns,
                 "array: rows of different length: ", columns, " and ", row.size());
    flat.insert(flat.end(), row.begin(), row.end());
  }
  return array(std::span<const T>(flat), Shape{int64_t(rows.size()), columns}, device);
}
// A 0-d array of one number.
Array scalar_array(const Scalar& value, const ArrayOptions& options = {});

// Foreign memory --------------------------------------------------------------------------------
// Views memory of `device` (a host address or a GPU's) in C order without a copy; the owner, when
// given, is kept until the last view goes. Work that was queued on GPU memory may still run then:
// an owner that frees it must know that (adopt_array does). ValueError when elements have no memory
// or are not aligned to their size.
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

// Copies raw host bytes; the typed forms above end here.
Array array_from_bytes(const void* data, const Shape& shape, Dtype dtype,
                       std::optional<Device> device);

template <class T>
Array array(std::span<const T> values, const Shape& shape, std::optional<Device> device) {
  CATENA_CHECK(ShapeError, element_count(shape) == int64_t(values.size()), "array: ", values.size(),
               " values do not fill shape ", shape);
  return array_from_bytes(values.data(), shape, dtype_of<T>, device);
}

}  // namespace catena
