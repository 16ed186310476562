// Repeats, inserts and deletes elements, and joins blocks.
#include <algorithm>
#include <numeric>

#include "array/one_wait.h"
#include "catena/array/creation.h"
#include "catena/array/indexing.h"
#include "catena/array/manipulation.h"
#include "catena/core/entry_scope.h"

namespace catena {

Array tile(const Array& a, const Shape& repetitions) {
  const EntryScope call("tile");
  Array x = a;
  Shape reps = repetitions;
  while (x.ndim() < reps.ndim()) x = x.expand_dims(0);
  while (reps.ndim() < x.ndim()) reps.insert(reps.begin(), 1);
  Shape spread, view_shape, result;  // (r0, n0, r1, n1, ...), written through a broadcast
  for (int i = 0; i < x.ndim(); ++i) {
    CATENA_CHECK(ValueError, reps[i] >= 0, "negative repetition in ", repetitions);
    spread.push_back(reps[i]);
    spread.push_back(x.shape()[i]);
    view_shape.push_back(1);
    view_shape.push_back(x.shape()[i]);
    result.push_back(reps[i] * x.shape()[i]);
  }
  return x.reshape(view_shape).broadcast_to(spread).copy().reshape(result);
}

Array repeat(const Array& a, int64_t count, Axis axis) {
  const EntryScope call("repeat");
  CATENA_CHECK(ValueError, count >= 0, "expected a count of at least 0, got ", count);
  const int ax = normalize_axis(axis, a.ndim());
  Array expanded = a.expand_dims(ax + 1);
  Shape spread = expanded.shape(), result = a.shape();
  spread[ax + 1] = count;
  result[ax] *= count;
  return expanded.broadcast_to(spread).copy().reshape(result);
}

Array repeat(const Array& a, int64_t count) { return repeat(a.ravel(), count, 0); }

Array repeat(const Array& a, const std::vector<int64_t>& counts, OptionalAxis axis) {
  const EntryScope call("repeat");
  const Array x = axis ? a : a.ravel();
  const int ax = axis ? normalize_axis(*axis, x.ndim()) : 0;
  const int64_t extent = x.shape()[size_t(ax)];
  if (counts.size() == 1) return repeat(x, counts[0], ax);
  CATENA_CHECK(ShapeError, static_cast<int64_t>(counts.size()) == extent, counts.size(),
               " counts for axis ", ax, " of extent ", extent);
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < extent; ++i) {
    CATENA_CHECK(ValueError, counts[size_t(i)] >= 0, "expected counts of at least 0, got ",
                 counts[size_t(i)]);
    positions.insert(positions.end(), size_t(counts[size_t(i)]), i);
  }
  return take(x, array(positions, x.device()), ax, OutOfRange::kWrap);
}

Array resize(const Array& a, const Shape& shape) {
  const EntryScope call("resize");
  const int64_t size = element_count(shape);
  if (size == 0 || a.size() == 0) return zeros(shape, {a.dtype(), a.device()});
  const Array flat = a.ravel();
  const Array enough = size > a.size() ? tile(flat, {(size + a.size() - 1) / a.size()}) : flat;
  return enough(Slice(0, size)).copy().reshape(shape);
}

Array delete_at(const Array& array, const std::vector<int64_t>& positions, OptionalAxis axis) {
  const EntryScope call("delete_at");
  const Array a = axis ? array : array.ravel();
  const int ax = normalize_axis(axis.value_or(0), a.ndim());
  const int64_t extent = a.shape()[size_t(ax)];
  std::vector<bool> gone(size_t(extent), false);
  for (int64_t p : positions) {
    CATENA_CHECK(IndexError, p >= -extent && p < extent, "position ", p,
                 " is out of bounds for axis ", ax, " of extent ", extent);
    gone[size_t(p < 0 ? p + extent : p)] = true;
  }
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < extent; ++i) {
    if (!gone[size_t(i)]) kept.push_back(i);
  }
  return take(a, catena::array(kept, a.device()), ax, OutOfRange::kWrap);
}

Array repeat(const Array& a, const Array& counts, OptionalAxis axis) {
  const EntryScope call("repeat");
  CATENA_CHECK(DtypeError, is_int(counts.dtype()), "counts must be integers, got ", counts.dtype());
  CATENA_CHECK(ShapeError, counts.ndim() <= 1, "expected 1-d counts, got shape ", counts.shape());
  refuse_capture(counts);
  return repeat(a, counts.to_vector<int64_t>(), axis);
}

namespace {

// Values as an array with the axes of a, in its dtype.
Array insertable(const Array& a, const Operand& operand) {
  Array values =
      operand.array() ? *operand.array() : full({}, operand.scalar(), {a.dtype(), a.device()});
  check_same_device(a, values);
  CATENA_CHECK(ShapeError, values.ndim() <= a.ndim(), "values of shape ", values.shape(),
               " have more axes than the array of shape ", a.shape());
  while (values.ndim() < a.ndim()) values = values.expand_dims(0);
  return values.astype(a.dtype(), false);
}

// a with values[k] (along the axis) inserted before element positions[k]; positions in [-n, n].
Array insert_each(const Array& a, std::vector<int64_t> positions, const Array& values, int axis) {
  const int64_t extent = a.shape()[size_t(axis)], added = int64_t(positions.size());
  for (int64_t& p : positions) {
    CATENA_CHECK(IndexError, p >= -extent && p <= extent, "position ", p,
                 " is out of bounds for axis ", axis, " of extent ", extent);
    if (p < 0) p += extent;
  }
  Shape shape = a.shape();
  shape[size_t(axis)] = added;
  // The final position of each element of (a, values): a value precedes the element at its
  // position.
  std::vector<int64_t> order(size_t(extent + added));
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int64_t i) { return i < extent ? i : positions[size_t(i - extent)]; };
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    return key(i) != key(j) ? key(i) < key(j) : i >= extent && j < extent;
  });
  const Array both = concatenate({a, values.broadcast_to(shape)}, axis);
  return take(both, array(order, a.device()), axis, OutOfRange::kWrap);
}

}  // namespace

Array insert(const Array& a, int64_t position, const Operand& values, OptionalAxis axis) {
  const EntryScope call("insert");
  const Array x = axis ? a : a.ravel();
  const int ax = normalize_axis(axis.value_or(0), x.ndim());
  const Array v = moveaxis(insertable(x, values), 0, ax);
  const auto added = size_t(v.shape()[size_t(ax)]);
  return insert_each(x, std::vector<int64_t>(added, position), v, ax);
}

Array insert(const Array& a, const std::vector<int64_t>& positions, const Operand& values,
             OptionalAxis axis) {
  const EntryScope call("insert");
  const Array x = axis ? a : a.ravel();
  const int ax = normalize_axis(axis.value_or(0), x.ndim());
  const Array v = insertable(x, values);
  if (positions.size() != 1) return insert_each(x, positions, v, ax);
  const auto added = size_t(v.shape()[size_t(ax)]);  // one position gets all of them
  return insert_each(x, std::vector<int64_t>(added, positions[0]), v, ax);
}

Array block(const std::vector<std::vector<Array>>& rows) {
  const EntryScope call("block");
  int ndim = 1;
  for (const auto& row : rows) {
    for (const Array& a : row) ndim = std::max(ndim, a.ndim());
  }
  if (rows.size() > 1) ndim = std::max(ndim, 2);
  std::vector<Array> joined;
  for (const auto& row : rows) {
    CATENA_CHECK(ValueError, !row.empty(), "a row without blocks");
    std::vector<Array> parts;
    for (Array a : row) {
      while (a.ndim() < ndim) a = a.expand_dims(0);
      parts.push_back(a);
    }
    joined.push_back(concatenate(parts, -1));
  }
  CATENA_CHECK(ValueError, !joined.empty(), "expected at least one row of blocks");
  return joined.size() == 1 ? joined.front() : concatenate(joined, -2);
}

}  // namespace catena
