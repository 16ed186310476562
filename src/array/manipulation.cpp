#include "catena/array/manipulation.h"

#include <algorithm>

#include "array/memory_order.h"
#include "array/promotion.h"
#include "array/result_into.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/core/entry_scope.h"
#include "catena/kernels/copy.h"

namespace catena {

Array reshape(const Array& a, const Shape& shape) {
  const EntryScope call("reshape");
  return a.reshape(shape);
}
Array ravel(const Array& a) {
  const EntryScope call("ravel");
  return a.ravel();
}
Array transpose(const Array& a, const Axes& axes) {
  const EntryScope call("transpose");
  return a.transpose(axes);
}
Array swapaxes(const Array& a, Axis axis1, Axis axis2) { return a.swapaxes(axis1, axis2); }
Array squeeze(const Array& a, const AxisList& axes) { return a.squeeze(axes); }
Array broadcast_to(const Array& a, const Shape& shape) {
  const EntryScope call("broadcast_to");
  return a.broadcast_to(shape);
}

Array moveaxis(const Array& a, const AxisList& sources, const AxisList& destinations) {
  const EntryScope call("moveaxis");
  CATENA_CHECK(ValueError, sources.size() == destinations.size(), sources.size(), " axes to ",
               destinations.size(), " places; expected lists of one length");
  if (sources.empty()) return a;
  const Axes taken = normalize_axes(sources, a.ndim());
  normalize_axes(destinations, a.ndim());  // refuses a position named twice
  Axes order(size_t(a.ndim()), -1);
  for (size_t k = 0; k < sources.size(); ++k) {
    order[size_t(normalize_axis(destinations[k], a.ndim()))] = normalize_axis(sources[k], a.ndim());
  }
  int64_t next = 0;
  for (int64_t& axis : order) {
    if (axis >= 0) continue;
    while (std::find(taken.begin(), taken.end(), next) != taken.end()) ++next;
    axis = next++;
  }
  return a.transpose(order);
}

Array expand_dims(const Array& a, const AxisList& axes) {
  const EntryScope call("expand_dims");
  if (axes.empty()) return a;
  Array result = a;
  for (int64_t axis : normalize_axes(axes, a.ndim() + axes.ndim()))
    result = result.expand_dims(axis);
  return result;
}

Array rollaxis(const Array& a, Axis axis, int64_t start) {
  const EntryScope call("rollaxis");
  const int from = normalize_axis(axis, a.ndim()), n = a.ndim();
  CATENA_CHECK(IndexError, start >= -n && start <= n, "start ", start, " is out of range for ", n,
               " axes; expected ", -n, " to ", n);
  const auto before = static_cast<int>(start < 0 ? start + n : start);
  return moveaxis(a, from, before > from ? before - 1 : before);
}

std::vector<Array> broadcast_arrays(std::span<const Array> arrays) {
  const EntryScope call("broadcast_arrays");
  Shape shape;
  for (const Array& a : arrays) shape = broadcast_shapes(shape, a.shape());
  std::vector<Array> views;
  for (const Array& a : arrays) views.push_back(a.broadcast_to(shape));
  return views;
}

Array atleast_1d(const Array& a) {
  const EntryScope call("atleast_1d");
  return a.ndim() >= 1 ? a : a.reshape({1});
}
Array atleast_2d(const Array& a) {
  const EntryScope call("atleast_2d");
  return a.ndim() >= 2 ? a : a.ndim() == 1 ? a.expand_dims(0) : a.reshape({1, 1});
}
Array atleast_3d(const Array& a) {
  const EntryScope call("atleast_3d");
  if (a.ndim() >= 3) return a;
  if (a.ndim() == 2) return a.expand_dims(2);
  return a.ndim() == 1 ? a.expand_dims(0).expand_dims(2) : a.reshape({1, 1, 1});
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

Array as_vec(const Array& a) {
  const EntryScope call("as_vec");
  return a.ndim() == 1 ? a : a.ravel();
}
Array as_mat(const Array& a) {
  const EntryScope call("as_mat");
  if (a.ndim() == 2) return a;
  CATENA_CHECK(ShapeError, a.ndim() > 0, "a 0-d array has no rows; use reshape({1, 1})");
  int64_t columns = 1;
  for (int d = 1; d < a.ndim(); ++d) columns *= a.shape(d);
  return a.reshape({a.shape(0), columns});
}

namespace {

// The memory order of arrays that are joined.
MemoryOrder joint_order(std::span<const Array> arrays) {
  std::vector<const Array*> operands;
  for (const Array& a : arrays) operands.push_back(&a);
  return common_order(operands, arrays.front().ndim());
}

// All arrays, each flattened, joined into one.
Array concatenate_flat(std::span<const Array> arrays, const Out& out) {
  std::vector<Array> flat;
  for (const Array& a : arrays) flat.push_back(a.ravel());
  return concatenate(flat, 0, out);
}

}  // namespace

Array concatenate(std::span<const Array> arrays, OptionalAxis axis, const Out& given) {
  const EntryScope call("concatenate");
  const Array* const out = destination(given);
  CATENA_CHECK(ValueError, !arrays.empty(), "expected at least one array");
  for (const Array& x : arrays) check_defined(x);
  if (!axis) return concatenate_flat(arrays, given);
  const Array& first = arrays.front();
  CATENA_CHECK(ShapeError, first.ndim() > 0, "0-d arrays cannot be joined; use stack");
  const int a = normalize_axis(*axis, first.ndim());
  Shape shape = first.shape();
  Dtype dtype = first.dtype();
  shape[a] = 0;
  for (const Array& x : arrays) {
    check_same_device(first, x);
    dtype = promote(dtype, x.dtype());
    Shape expected = shape, got = x.shape();
    CATENA_CHECK(ShapeError, x.ndim() == first.ndim(), x.shape(),
                 " has another number of axes than ", first.shape());
    shape[a] += got[a];
    expected[a] = got[a] = 0;
    CATENA_CHECK(ShapeError, expected == got, x.shape(), " and ", first.shape(),
                 " differ outside axis ", a, "; expected equal extents there");
  }
  if (out) check_storable(dtype, out->dtype());
  const MemoryOrder order = joint_order(arrays);
  Array result = Array::uninitialized(shape, dtype, first.device(), order);
  if (result.size() == 0) return result_into(result, out);
  std::vector<Array> inputs;
  for (const Array& x : arrays) {
    if (x.size() > 0) inputs.push_back(in_order(x.astype(dtype, false), order));
  }
  const int place = static_cast<int>(order.inverse(result.ndim())[size_t(a)]);
  kernels::concatenate(result.device(), {inputs, place, in_order(result, order)});
  return result_into(result, out);
}

Array concatenate(std::initializer_list<Array> arrays, OptionalAxis axis, const Out& out) {
  return concatenate(std::span<const Array>(arrays.begin(), arrays.size()), axis, out);
}

Array stack(std::initializer_list<Array> arrays, Axis axis, const Out& out) {
  const EntryScope call("stack");
  return stack(std::span<const Array>(arrays.begin(), arrays.size()), axis, out);
}

Array stack(std::span<const Array> arrays, Axis axis, const Out& out) {
  const EntryScope call("stack");
  CATENA_CHECK(ValueError, !arrays.empty(), "expected at least one array");
  for (const Array& x : arrays) {  // as in NumPy, before the axis
    check_defined(x);
    CATENA_CHECK(ShapeError, x.shape() == arrays.front().shape(), "shapes ", arrays.front().shape(),
                 " and ", x.shape(), " differ");
  }
  std::vector<Array> expanded;
  for (const Array& x : arrays) expanded.push_back(x.expand_dims(axis));
  return concatenate(expanded, normalize_axis(axis, arrays.front().ndim() + 1), out);
}

namespace {

// Views between consecutive split positions of one axis.
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
  const EntryScope call("vstack");
  return concatenate(atleast_2d(arrays), 0);
}
Array hstack(std::span<const Array> arrays) {
  const EntryScope call("hstack");
  const auto parts = atleast_1d(arrays);
  return concatenate(parts, !parts.empty() && parts.front().ndim() == 1 ? 0 : 1);
}
Array dstack(std::span<const Array> arrays) {
  const EntryScope call("dstack");
  return concatenate(atleast_3d(arrays), 2);
}

std::vector<Array> array_split(const Array& a, int64_t sections, Axis axis) {
  const EntryScope call("array_split");
  CATENA_CHECK(ValueError, sections > 0, "expected at least one section, got ", sections);
  const int ax = normalize_axis(axis, a.ndim());
  const int64_t extent = a.shape()[ax], each = extent / sections, longer = extent % sections;
  Axes positions;
  for (int64_t i = 1; i < sections; ++i) positions.push_back(i * each + std::min(i, longer));
  return cut(a, ax, positions);
}

std::vector<Array> split(const Array& a, int64_t sections, Axis axis) {
  const EntryScope call("split");
  const int ax = normalize_axis(axis, a.ndim());
  CATENA_CHECK(ShapeError, sections > 0 && a.shape()[ax] % sections == 0, "axis ", ax, " of ",
               a.shape(), " does not divide into ", sections,
               " equal parts; array_split allows unequal ones");
  return array_split(a, sections, ax);
}

std::vector<Array> split(const Array& a, const Axes& positions, Axis axis) {
  const EntryScope call("split");
  return cut(a, normalize_axis(axis, a.ndim()), positions);
}

std::vector<Array> array_split(const Array& a, const Axes& positions, Axis axis) {
  const EntryScope call("array_split");
  return split(a, positions, axis);
}

namespace {

// The axis along which vsplit, hsplit and dsplit split.
int split_axis(const Array& a, int axis, int least) {
  CATENA_CHECK(ShapeError, a.ndim() >= least, "expected at least ", least, " axes, got shape ",
               a.shape());
  return a.ndim() == 1 ? 0 : axis;
}

}  // namespace

std::vector<Array> vsplit(const Array& a, int64_t sections) {
  const EntryScope call("vsplit");
  return split(a, sections, split_axis(a, 0, 2));
}
std::vector<Array> vsplit(const Array& a, const Axes& positions) {
  const EntryScope call("vsplit");
  return split(a, positions, split_axis(a, 0, 2));
}
std::vector<Array> hsplit(const Array& a, int64_t sections) {
  const EntryScope call("hsplit");
  return split(a, sections, split_axis(a, 1, 1));
}
std::vector<Array> hsplit(const Array& a, const Axes& positions) {
  const EntryScope call("hsplit");
  return split(a, positions, split_axis(a, 1, 1));
}
std::vector<Array> dsplit(const Array& a, int64_t sections) {
  const EntryScope call("dsplit");
  return split(a, sections, split_axis(a, 2, 3));
}
std::vector<Array> dsplit(const Array& a, const Axes& positions) {
  const EntryScope call("dsplit");
  return split(a, positions, split_axis(a, 2, 3));
}

Array column_stack(std::span<const Array> arrays) {
  const EntryScope call("column_stack");
  return concatenate(map_arrays(arrays,
                                [](const Array& a) {
                                  CATENA_CHECK(ShapeError, a.ndim() == 1 || a.ndim() == 2,
                                               "expected 1 or 2 axes, got shape ", a.shape());
                                  return a.ndim() == 1 ? a.expand_dims(1) : a;
                                }),
                     1);
}

Array append(const Array& a, const Array& b, OptionalAxis axis) {
  const EntryScope call("append");
  return axis ? concatenate({a, b}, *axis) : concatenate({a.ravel(), b.ravel()});
}

Array roll(const Array& a, int64_t shift, Axis axis) {
  const EntryScope call("roll");
  const int ax = normalize_axis(axis, a.ndim());
  const int64_t extent = a.shape()[ax];
  if (extent == 0) return a.copy();
  const int64_t k = ((shift % extent) + extent) % extent;
  const auto parts = cut(a, ax, {extent - k});
  return concatenate({parts[1], parts[0]}, ax);
}

Array roll(const Array& a, int64_t shift) { return roll(a.ravel(), shift, 0).reshape(a.shape()); }

Array roll(const Array& a, const Axes& shifts, const Axes& axes) {
  const EntryScope call("roll");
  CATENA_CHECK(ShapeError, shifts.size() == axes.size() || shifts.size() == 1, shifts.size(),
               " shifts for ", axes.size(), " axes");
  Strides total(size_t(a.ndim()), 0);
  for (size_t k = 0; k < axes.size(); ++k) {
    total[size_t(normalize_axis(axes[k], a.ndim()))] += shifts[shifts.size() == 1 ? 0 : k];
  }
  Array result = a;
  for (int d = 0; d < a.ndim(); ++d) {
    if (total[size_t(d)] != 0) result = roll(result, total[size_t(d)], d);
  }
  return result.same_body(a) ? a.copy() : result;
}

Array flip(const Array& a, const AxisList& axes) {
  const EntryScope call("flip");
  std::vector<Index> index(size_t(a.ndim()), Slice());
  for (int64_t axis : normalize_axes(axes, a.ndim())) index[size_t(axis)] = Slice(none, none, -1);
  return a.at(std::span<const Index>(index));
}

Array flipud(const Array& a) {
  const EntryScope call("flipud");
  return flip(a, {0});
}
Array fliplr(const Array& a) {
  const EntryScope call("fliplr");
  CATENA_CHECK(ShapeError, a.ndim() >= 2, "expected at least 2 axes, got ", a.shape());
  return flip(a, {1});
}

Array rot90(const Array& a, std::optional<int64_t> times, const Axes& axes) {
  const EntryScope call("rot90");
  CATENA_CHECK(ShapeError, a.ndim() >= 2, "expected at least 2 axes, got ", a.shape());
  CATENA_CHECK(ValueError, axes.size() == 2, "expected two axes, got ", axes);
  normalize_axes(axes, a.ndim());  // refuses an axis named twice
  const int64_t from = axes[0], to = axes[1];
  switch (((times.value_or(1) % 4) + 4) % 4) {
    case 1: return flip(a.swapaxes(from, to), {from});
    case 2: return flip(a, {from, to});
    case 3: return flip(a.swapaxes(from, to), {to});
    default: return a;
  }
}

}  // namespace catena
