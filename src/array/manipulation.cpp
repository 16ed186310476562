#include "catena/array/manipulation.h"

#include <algorithm>

#include "array/called_as.h"
#include "array/promotion.h"
#include "array/result_into.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/core/memory_profile.h"
#include "catena/kernels/copy.h"

namespace catena {

Array reshape(const Array& a, const Shape& shape) try {
  return a.reshape(shape);
} catch (const Error&) {
  rethrow_as("reshape");
}
Array ravel(const Array& a) try { return a.ravel(); } catch (const Error&) {
  rethrow_as("ravel");
}
Array transpose(const Array& a, const Axes& axes) try {
  return a.transpose(axes);
} catch (const Error&) {
  rethrow_as("transpose");
}
Array swapaxes(const Array& a, int64_t axis1, int64_t axis2) { return a.swapaxes(axis1, axis2); }
Array squeeze(const Array& a, const Axes& axes) { return a.squeeze(axes); }
Array broadcast_to(const Array& a, const Shape& shape) try {
  return a.broadcast_to(shape);
} catch (const Error&) {
  rethrow_as("broadcast_to");
}

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

Array moveaxis(const Array& a, const Axes& sources, const Axes& destinations) {
  CATENA_CHECK(ValueError, sources.size() == destinations.size(), "moveaxis: ", sources.size(),
               " axes to ", destinations.size(), " places; expected lists of one length");
  if (sources.empty()) return a;
  const Axes taken = normalize_axes("moveaxis", sources, a.ndim());
  normalize_axes("moveaxis", destinations, a.ndim());  // refuses a place named twice
  Axes order(size_t(a.ndim()), -1);
  for (size_t k = 0; k < sources.size(); ++k) {
    order[size_t(normalize_axis("moveaxis", destinations[k], a.ndim()))] =
        normalize_axis("moveaxis", sources[k], a.ndim());
  }
  int64_t next = 0;
  for (int64_t& axis : order) {
    if (axis >= 0) continue;
    while (std::find(taken.begin(), taken.end(), next) != taken.end()) ++next;
    axis = next++;
  }
  return a.transpose(order);
}

Array expand_dims(const Array& a, const Axes& axes) {
  if (axes.empty()) return a;
  Array result = a;
  for (int64_t axis : normalize_axes("expand_dims", axes, a.ndim() + axes.ndim()))
    result = result.expand_dims(axis);
  return result;
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

Array atleast_1d(const Array& a) try {
  return a.ndim() >= 1 ? a : a.reshape({1});
} catch (const Error&) {
  rethrow_as("atleast_1d");
}
Array atleast_2d(const Array& a) try {
  return a.ndim() >= 2 ? a : a.ndim() == 1 ? a.expand_dims(0) : a.reshape({1, 1});
} catch (const Error&) {
  rethrow_as("atleast_2d");
}
Array atleast_3d(const Array& a) try {
  if (a.ndim() >= 3) return a;
  if (a.ndim() == 2) return a.expand_dims(2);
  return a.ndim() == 1 ? a.expand_dims(0).expand_dims(2) : a.reshape({1, 1, 1});
} catch (const Error&) {
  rethrow_as("atleast_3d");
}

namespace {

template <class F>
std::vector<Array> map_arrays(std::span<const Array> arrays, F f) {
  std::vector<Array> result;
  for (const Array& a : arrays) result.push_back(f(a));
  return result;
}

}  // namespace

std::vector<Array> atleast_1d(std::span<const Array> arrays) {
  return map_arrays(arrays, [](const Array& a) { return atleast_1d(a); });
}
std::vector<Array> atleast_2d(std::span<const Array> arrays) {
  return map_arrays(arrays, [](const Array& a) { return atleast_2d(a); });
}
std::vector<Array> atleast_3d(std::span<const Array> arrays) {
  return map_arrays(arrays, [](const Array& a) { return atleast_3d(a); });
}
std::vector<Array> atleast_1d(std::initializer_list<Array> arrays) {
  return atleast_1d(std::span(arrays.begin(), arrays.size()));
}
std::vector<Array> atleast_2d(std::initializer_list<Array> arrays) {
  return atleast_2d(std::span(arrays.begin(), arrays.size()));
}
std::vector<Array> atleast_3d(std::initializer_list<Array> arrays) {
  return atleast_3d(std::span(arrays.begin(), arrays.size()));
}

Array as_vec(const Array& a) try { return a.ndim() == 1 ? a : a.ravel(); } catch (const Error&) {
  rethrow_as("as_vec");
}
Array as_mat(const Array& a) try {
  if (a.ndim() == 2) return a;
  CATENA_CHECK(ShapeError, a.ndim() > 0, "as_mat: a 0-d array has no rows; use reshape({1, 1})");
  int64_t columns = 1;
  for (int d = 1; d < a.ndim(); ++d) columns *= a.shape(d);
  return a.reshape({a.shape(0), columns});
} catch (const Error&) {
  rethrow_as("as_mat");
}

namespace {

// All arrays as one flattened one.
Array concatenate_flat(std::span<const Array> arrays, const Out& out) {
  std::vector<Array> flat;
  for (const Array& a : arrays) flat.push_back(a.ravel());
  return concatenate(flat, 0, out);
}

}  // namespace

Array concatenate(std::span<const Array> arrays, std::optional<int64_t> axis, const Out& given) {
  const CallScope scope("concatenate");
  const Array* const out = destination("concatenate", given);
  CATENA_CHECK(ValueError, !arrays.empty(), "concatenate: expected at least one array");
  for (const Array& x : arrays) check_defined("concatenate", x);
  if (!axis) return concatenate_flat(arrays, given);
  const Array& first = arrays.front();
  CATENA_CHECK(ShapeError, first.ndim() > 0, "concatenate: 0-d arrays cannot be joined; use stack");
  const int a = normalize_axis("concatenate", *axis, first.ndim());
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
  if (out) check_storable("concatenate", dtype, out->dtype());
  Array result = Array::uninitialized(shape, dtype, first.device());
  if (result.size() == 0) return result_into("concatenate", result, out);
  std::vector<Array> inputs;
  for (const Array& x : arrays) {
    if (x.size() > 0) inputs.push_back(x.astype(dtype, false));
  }
  kernels::concatenate(result.device(), {inputs, a, result});
  return result_into("concatenate", result, out);
}

Array concatenate(std::initializer_list<Array> arrays, std::optional<int64_t> axis,
                  const Out& out) {
  return concatenate(std::span<const Array>(arrays.begin(), arrays.size()), axis, out);
}

Array stack(std::initializer_list<Array> arrays, int64_t axis, const Out& out) try {
  return stack(std::span<const Array>(arrays.begin(), arrays.size()), axis, out);
} catch (const Error&) {
  rethrow_as("stack");
}

Array stack(std::span<const Array> arrays, int64_t axis, const Out& out) try {
  CATENA_CHECK(ValueError, !arrays.empty(), "stack: expected at least one array");
  std::vector<Array> expanded;
  for (const Array& x : arrays) {
    check_defined("stack", x);
    CATENA_CHECK(ShapeError, x.shape() == arrays.front().shape(), "stack: shapes ",
                 arrays.front().shape(), " and ", x.shape(), " differ");
    expanded.push_back(x.expand_dims(axis));
  }
  return concatenate(expanded, normalize_axis("stack", axis, arrays.front().ndim() + 1), out);
} catch (const Error&) {
  rethrow_as("stack");
}

namespace {

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

Array vstack(std::span<const Array> arrays) try {
  return concatenate(atleast_2d(arrays), 0);
} catch (const Error&) {
  rethrow_as("vstack");
}
Array hstack(std::span<const Array> arrays) try {
  const auto parts = atleast_1d(arrays);
  return concatenate(parts, !parts.empty() && parts.front().ndim() == 1 ? 0 : 1);
} catch (const Error&) {
  rethrow_as("hstack");
}
Array dstack(std::span<const Array> arrays) try {
  return concatenate(atleast_3d(arrays), 2);
} catch (const Error&) {
  rethrow_as("dstack");
}

std::vector<Array> array_split(const Array& a, int64_t sections, int64_t axis) try {
  CATENA_CHECK(ValueError, sections > 0, "split: expected at least one section, got ", sections);
  const int ax = normalize_axis("split", axis, a.ndim());
  const int64_t extent = a.shape()[ax], each = extent / sections, longer = extent % sections;
  Axes positions;
  for (int64_t i = 1; i < sections; ++i) positions.push_back(i * each + std::min(i, longer));
  return cut(a, ax, positions);
} catch (const Error&) {
  rethrow_as("array_split");
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

std::vector<Array> array_split(const Array& a, const Axes& positions, int64_t axis) try {
  return split(a, positions, axis);
} catch (const Error&) {
  rethrow_as("array_split");
}

namespace {

// The axis of vsplit, hsplit and dsplit.
int split_axis(const char* who, const Array& a, int axis, int least) {
  CATENA_CHECK(ShapeError, a.ndim() >= least, who, ": expected at least ", least,
               " axes, got shape ", a.shape());
  return a.ndim() == 1 ? 0 : axis;
}

}  // namespace

std::vector<Array> vsplit(const Array& a, int64_t sections) try {
  return split(a, sections, split_axis("vsplit", a, 0, 2));
} catch (const Error&) {
  rethrow_as("vsplit");
}
std::vector<Array> vsplit(const Array& a, const Axes& positions) try {
  return split(a, positions, split_axis("vsplit", a, 0, 2));
} catch (const Error&) {
  rethrow_as("vsplit");
}
std::vector<Array> hsplit(const Array& a, int64_t sections) try {
  return split(a, sections, split_axis("hsplit", a, 1, 1));
} catch (const Error&) {
  rethrow_as("hsplit");
}
std::vector<Array> hsplit(const Array& a, const Axes& positions) try {
  return split(a, positions, split_axis("hsplit", a, 1, 1));
} catch (const Error&) {
  rethrow_as("hsplit");
}
std::vector<Array> dsplit(const Array& a, int64_t sections) try {
  return split(a, sections, split_axis("dsplit", a, 2, 3));
} catch (const Error&) {
  rethrow_as("dsplit");
}
std::vector<Array> dsplit(const Array& a, const Axes& positions) try {
  return split(a, positions, split_axis("dsplit", a, 2, 3));
} catch (const Error&) {
  rethrow_as("dsplit");
}

Array column_stack(std::span<const Array> arrays) try {
  return concatenate(map_arrays(arrays,
                                [](const Array& a) {
                                  CATENA_CHECK(ShapeError, a.ndim() == 1 || a.ndim() == 2,
                                               "column_stack: expected 1 or 2 axes, got shape ",
                                               a.shape());
                                  return a.ndim() == 1 ? a.expand_dims(1) : a;
                                }),
                     1);
} catch (const Error&) {
  rethrow_as("column_stack");
}

Array append(const Array& a, const Array& b, std::optional<int64_t> axis) try {
  return axis ? concatenate({a, b}, *axis) : concatenate({a.ravel(), b.ravel()});
} catch (const Error&) {
  rethrow_as("append");
}

Array roll(const Array& a, int64_t shift, int64_t axis) {
  const int ax = normalize_axis("roll", axis, a.ndim());
  const int64_t extent = a.shape()[ax];
  if (extent == 0) return a.copy();
  const int64_t k = ((shift % extent) + extent) % extent;
  const auto parts = cut(a, ax, {extent - k});
  return concatenate({parts[1], parts[0]}, ax);
}

Array roll(const Array& a, int64_t shift) { return roll(a.ravel(), shift, 0).reshape(a.shape()); }

Array roll(const Array& a, const Axes& shifts, const Axes& axes) {
  CATENA_CHECK(ShapeError, shifts.size() == axes.size() || shifts.size() == 1,
               "roll: ", shifts.size(), " shifts for ", axes.size(), " axes");
  Strides total(size_t(a.ndim()), 0);
  for (size_t k = 0; k < axes.size(); ++k) {
    total[size_t(normalize_axis("roll", axes[k], a.ndim()))] += shifts[shifts.size() == 1 ? 0 : k];
  }
  Array result = a;
  for (int d = 0; d < a.ndim(); ++d) {
    if (total[size_t(d)] != 0) result = roll(result, total[size_t(d)], d);
  }
  return result.same_body(a) ? a.copy() : result;
}

Array flip(const Array& a, const Axes& axes) {
  std::vector<Index> index(size_t(a.ndim()), Slice());
  for (int64_t axis : normalize_axes("flip", axes, a.ndim()))
    index[size_t(axis)] = Slice(none, none, -1);
  return a.at(std::span<const Index>(index));
}

Array flipud(const Array& a) try { return flip(a, {0}); } catch (const Error&) {
  rethrow_as("flipud");
}
Array fliplr(const Array& a) {
  CATENA_CHECK(ShapeError, a.ndim() >= 2, "fliplr: expected at least 2 axes, got ", a.shape());
  return flip(a, {1});
}

Array rot90(const Array& a, std::optional<int64_t> times, const Axes& axes) {
  CATENA_CHECK(ShapeError, a.ndim() >= 2, "rot90: expected at least 2 axes, got ", a.shape());
  CATENA_CHECK(ValueError, axes.size() == 2, "rot90: expected two axes, got ", axes);
  normalize_axes("rot90", axes, a.ndim());  // refuses one axis twice
  const int64_t from = axes[0], to = axes[1];
  switch (((times.value_or(1) % 4) + 4) % 4) {
    case 1:
      return flip(a.swapaxes(from, to), {from});
    case 2:
      return flip(a, {from, to});
    case 3:
      return flip(a.swapaxes(from, to), {to});
    default:
      return a;
  }
}

}  // namespace catena
