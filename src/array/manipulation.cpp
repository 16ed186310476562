#include "catena/array/manipulation.h"

#include <algorithm>

#include "catena/array/slots.h"
#include "catena/core/memory_profile.h"

namespace catena {

Array reshape(const Array& a, const Shape& shape) { return a.reshape(shape); }
Array ravel(const Array& a) { return a.ravel(); }
Array transpose(const Array& a, const Axes& axes) { return a.transpose(axes); }
Array swapaxes(const Array& a, int64_t axis1, int64_t axis2) { return a.swapaxes(axis1, axis2); }
Array squeeze(const Array& a, const Axes& axes) { return a.squeeze(axes); }
Array expand_dims(const Array& a, int64_t axis) { return a.expand_dims(axis); }
Array broadcast_to(const Array& a, const Shape& shape) { return a.broadcast_to(shape); }

Array moveaxis(const Array& a, int64_t source, int64_t destination) {
  const int from = normalize_axis("moveaxis", source, a.ndim()),
            to = normalize_axis("moveaxis", destination, a.ndim());
  Axes order;
  for (int i = 0; i < a.ndim(); ++i) {
    if (i != from) order.push_back(i);
  }
  order.insert(order.begin() + to, from);
  return a.ndim() ? a.transpose(order) : a;
}

Array rollaxis(const Array& a, int64_t axis, int64_t start) {
  const int from = normalize_axis("rollaxis", axis, a.ndim()), n = a.ndim();
  CATENA_CHECK(IndexError, start >= -n && start <= n, "rollaxis: start ", start,
               " is out of range for ", n, " axes; expected ", -n, " to ", n);
  const auto before = static_cast<int>(start < 0 ? start + n : start);
  return moveaxis(a, from, before > from ? before - 1 : before);
}

std::vector<Array> broadcast_arrays(std::span<const Array> arrays) {
  Shape shape;
  for (const Array& a : arrays) shape = broadcast_shapes("broadcast_arrays", shape, a.shape());
  std::vector<Array> views;
  for (const Array& a : arrays) views.push_back(a.broadcast_to(shape));
  return views;
}

Array atleast_1d(const Array& a) { return a.ndim() >= 1 ? a : a.reshape({1}); }
Array atleast_2d(const Array& a) {
  return a.ndim() >= 2 ? a : a.ndim() == 1 ? a.expand_dims(0) : a.reshape({1, 1});
}
Array atleast_3d(const Array& a) {
  if (a.ndim() >= 3) return a;
  if (a.ndim() == 2) return a.expand_dims(2);
  return a.ndim() == 1 ? a.reshape({1, -1, 1}) : a.reshape({1, 1, 1});
}

Array concatenate(std::span<const Array> arrays, int64_t axis) {
  const CallScope scope("concatenate");
  CATENA_CHECK(ValueError, !arrays.empty(), "concatenate: expected at least one array");
  const Array& first = arrays.front();
  CATENA_CHECK(ShapeError, first.ndim() > 0, "concatenate: 0-d arrays cannot be joined; use stack");
  const int a = normalize_axis("concatenate", axis, first.ndim());
  Shape shape = first.shape();
  Dtype dtype = first.dtype();
  shape[a] = 0;
  for (const Array& x : arrays) {
    check_same_device("concatenate", first, x);
    dtype = promote(dtype, x.dtype());
    Shape expected = shape, got = x.shape();
    CATENA_CHECK(ShapeError, x.ndim() == first.ndim(), "concatenate: ", x.shape(),
                 " has another number of axes than ", first.shape());
    shape[a] += got[a];
    expected[a] = got[a] = 0;
    CATENA_CHECK(ShapeError, expected == got, "concatenate: ", x.shape(), " and ", first.shape(),
                 " differ outside axis ", a, "; expected equal extents there");
  }
  Array result = Array::uninitialized(shape, dtype, first.device());
  if (result.size() == 0) return result;
  std::vector<Array> inputs;
  for (const Array& x : arrays) {
    if (x.size() > 0) inputs.push_back(x.astype(dtype, false));
  }
  kernels::concatenate(result.device(), inputs, a, result);
  return result;
}

Array concatenate(std::initializer_list<Array> arrays, int64_t axis) {
  return concatenate(std::span<const Array>(arrays.begin(), arrays.size()), axis);
}

Array stack(std::span<const Array> arrays, int64_t axis) {
  CATENA_CHECK(ValueError, !arrays.empty(), "stack: expected at least one array");
  std::vector<Array> expanded;
  for (const Array& x : arrays) {
    CATENA_CHECK(ShapeError, x.shape() == arrays.front().shape(), "stack: shapes ",
                 arrays.front().shape(), " and ", x.shape(), " differ");
    expanded.push_back(x.expand_dims(axis));
  }
  return concatenate(expanded, normalize_axis("stack", axis, arrays.front().ndim() + 1));
}

namespace {

template <class F>
std::vector<Array> map_arrays(std::span<const Array> arrays, F f) {
  std::vector<Array> result;
  for (const Array& a : arrays) result.push_back(f(a));
  return result;
}

// Views between consecutive cut positions of one axis.
std::vector<Array> cut(const Array& a, int axis, const Axes& positions) {
  std::vector<Array> parts;
  int64_t start = 0;
  const int64_t extent = a.shape()[axis];
  std::vector<Index> index(size_t(axis) + 1, Slice());
  auto take_part = [&](int64_t from, int64_t to) {
    index.back() = Slice(from, std::max(from, to));
    parts.push_back(a.at(std::span<const Index>(index)));
  };
  for (int64_t position : positions) {
    const int64_t p = std::clamp<int64_t>(position < 0 ? position + extent : position, 0, extent);
    take_part(start, p);
    start = p;
  }
  take_part(start, extent);
  return parts;
}

}  // namespace

Array vstack(std::span<const Array> arrays) {
  return concatenate(map_arrays(arrays, atleast_2d), 0);
}
Array hstack(std::span<const Array> arrays) {
  const auto parts = map_arrays(arrays, atleast_1d);
  return concatenate(parts, !parts.empty() && parts.front().ndim() == 1 ? 0 : 1);
}
Array dstack(std::span<const Array> arrays) {
  return concatenate(map_arrays(arrays, atleast_3d), 2);
}

std::vector<Array> array_split(const Array& a, int64_t sections, int64_t axis) {
  CATENA_CHECK(ValueError, sections > 0, "split: expected at least one section, got ", sections);
  const int ax = normalize_axis("split", axis, a.ndim());
  const int64_t extent = a.shape()[ax], each = extent / sections, longer = extent % sections;
  Axes positions;
  for (int64_t i = 1; i < sections; ++i) positions.push_back(i * each + std::min(i, longer));
  return cut(a, ax, positions);
}

std::vector<Array> split(const Array& a, int64_t sections, int64_t axis) {
  const int ax = normalize_axis("split", axis, a.ndim());
  CATENA_CHECK(ShapeError, sections > 0 && a.shape()[ax] % sections == 0, "split: axis ", ax,
               " of ", a.shape(), " does not divide into ", sections,
               " equal parts; array_split allows unequal ones");
  return array_split(a, sections, ax);
}

std::vector<Array> split(const Array& a, const Axes& positions, int64_t axis) {
  return cut(a, normalize_axis("split", axis, a.ndim()), positions);
}

Array tile(const Array& a, const Shape& repetitions) {
  Array x = a;
  Shape reps = repetitions;
  while (x.ndim() < reps.ndim()) x = x.expand_dims(0);
  while (reps.ndim() < x.ndim()) reps.insert(reps.begin(), 1);
  Shape spread, view_shape, result;  // (r0, n0, r1, n1, ...) written through a broadcast
  for (int i = 0; i < x.ndim(); ++i) {
    CATENA_CHECK(ValueError, reps[i] >= 0, "tile: negative repetition in ", repetitions);
    spread.push_back(reps[i]);
    spread.push_back(x.shape()[i]);
    view_shape.push_back(1);
    view_shape.push_back(x.shape()[i]);
    result.push_back(reps[i] * x.shape()[i]);
  }
  return x.reshape(view_shape).broadcast_to(spread).copy().reshape(result);
}

Array repeat(const Array& a, int64_t count, int64_t axis) {
  CATENA_CHECK(ValueError, count >= 0, "repeat: expected a count of at least 0, got ", count);
  const int ax = normalize_axis("repeat", axis, a.ndim());
  Array expanded = a.expand_dims(ax + 1);
  Shape spread = expanded.shape(), result = a.shape();
  spread[ax + 1] = count;
  result[ax] *= count;
  return expanded.broadcast_to(spread).copy().reshape(result);
}

Array roll(const Array& a, int64_t shift, int64_t axis) {
  const int ax = normalize_axis("roll", axis, a.ndim());
  const int64_t extent = a.shape()[ax];
  if (extent == 0) return a.copy();
  const int64_t k = ((shift % extent) + extent) % extent;
  const auto parts = cut(a, ax, {extent - k});
  return concatenate({parts[1], parts[0]}, ax);
}

Array flip(const Array& a, const Axes& axes) {
  std::vector<Index> index(size_t(a.ndim()), Slice());
  for (int64_t axis : normalize_axes("flip", axes, a.ndim()))
    index[size_t(axis)] = Slice(none, none, -1);
  return a.at(std::span<const Index>(index));
}

Array flipud(const Array& a) { return flip(a, {0}); }
Array fliplr(const Array& a) {
  CATENA_CHECK(ShapeError, a.ndim() >= 2, "fliplr: expected at least 2 axes, got ", a.shape());
  return flip(a, {1});
}

Array rot90(const Array& a, int64_t times) {
  CATENA_CHECK(ShapeError, a.ndim() >= 2, "rot90: expected at least 2 axes, got ", a.shape());
  switch (((times % 4) + 4) % 4) {
    case 1:
      return flip(a.swapaxes(0, 1), {0});
    case 2:
      return flip(a, {0, 1});
    case 3:
      return flip(a.swapaxes(0, 1), {1});
    default:
      return a;
  }
}

}  // namespace catena
