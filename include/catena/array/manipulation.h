// Joining, splitting and rearranging arrays. Views where NumPy gives views.
#pragma once

#include <span>
#include <vector>

#include "catena/array/array.h"

namespace catena {

// The methods of Array, as functions: views where the strides allow one.
Array reshape(const Array& a, const Shape& shape);
Array ravel(const Array& a);
Array transpose(const Array& a, const Axes& axes = {});
Array swapaxes(const Array& a, int64_t axis1, int64_t axis2);
// Moves `axis` to the end / to `start`, as NumPy's rollaxis.
Array rollaxis(const Array& a, int64_t axis, int64_t start = 0);
Array moveaxis(const Array& a, int64_t source, int64_t destination);
Array squeeze(const Array& a, const Axes& axes = {});
Array expand_dims(const Array& a, int64_t axis);
Array broadcast_to(const Array& a, const Shape& shape);
// All arrays as views of their common shape.
std::vector<Array> broadcast_arrays(std::span<const Array> arrays);
Array atleast_1d(const Array& a);
Array atleast_2d(const Array& a);
Array atleast_3d(const Array& a);

// Arrays that agree in all axes but `axis`, one after the other; dtypes are promoted.
Array concatenate(std::span<const Array> arrays, int64_t axis = 0);
Array concatenate(std::initializer_list<Array> arrays, int64_t axis = 0);
// Along a new axis.
Array stack(std::span<const Array> arrays, int64_t axis = 0);
Array vstack(std::span<const Array> arrays);
Array hstack(std::span<const Array> arrays);
Array dstack(std::span<const Array> arrays);

// Views: equal parts (ShapeError if the extent does not divide), or cuts at the given positions.
std::vector<Array> split(const Array& a, int64_t sections, int64_t axis = 0);
std::vector<Array> split(const Array& a, const Axes& positions, int64_t axis = 0);
// As split, but the first extent % sections parts are one longer.
std::vector<Array> array_split(const Array& a, int64_t sections, int64_t axis = 0);

Array tile(const Array& a, const Shape& repetitions);
Array repeat(const Array& a, int64_t count, int64_t axis);
Array roll(const Array& a, int64_t shift, int64_t axis);
Array flip(const Array& a, const Axes& axes = {});
Array flipud(const Array& a);
Array fliplr(const Array& a);
Array rot90(const Array& a, int64_t times = 1);

}  // namespace catena
