#include "catena/array/along_axis.h"

#include <algorithm>

#include "array/positions.h"
#include "catena/array/casting.h"
#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/scan.h"
#include "catena/core/entry_scope.h"

namespace catena {
namespace {

// A 1-d array, reshaped to run along axis `axis` of `ndim`.
Array along(const Array& line, size_t axis, size_t ndim) {
  Shape shape(ndim, 1);
  shape[axis] = line.size();
  return line.reshape(shape);
}

// An index for the positions along an axis and all positions of the other axes.
std::vector<AnyIndex> line_positions(const Array& a, const Array& indices, int axis) {
  CATENA_CHECK(ShapeError, indices.ndim() == a.ndim(), "positions of shape ", indices.shape(),
               " for an array of shape ", a.shape(), "; expected as many axes");
  std::vector<AnyIndex> entries;
  for (int d = 0; d < a.ndim(); ++d) {
    if (d == axis) {
      entries.emplace_back(integer_positions(a.device(), indices));
      continue;
    }
    entries.emplace_back(along(arange(a.shape(d), a.device()), size_t(d), size_t(a.ndim())));
  }
  return entries;
}

// Values as an array of a's dtype.
Array as_values(const Array& a, const Operand& operand) {
  if (operand.array() == nullptr) return full({1}, operand.scalar(), {a.dtype(), a.device()});
  check_same_device(a, *operand.array());
  return operand.array()->ravel().astype(a.dtype(), false);
}

void check_mask(const Array& a, const Array& mask) {
  check_same_device(a, mask);
  CATENA_CHECK(ShapeError, mask.shape() == a.shape(), "a mask of shape ", mask.shape(),
               " for an array of shape ", a.shape());
}

// The elements [i, i, ..., i] as a 1-d view.
Array main_diagonal(const Array& a) {
  CATENA_CHECK(ShapeError, a.ndim() >= 2, "expected at least 2 axes, got shape ", a.shape());
  const auto [least, most] = std::minmax_element(a.shape().begin(), a.shape().end());
  CATENA_CHECK(ShapeError, a.ndim() == 2 || *least == *most,
               "more than 2 axes must have one extent, got shape ", a.shape());
  int64_t step = 0;
  for (int64_t stride : a.strides()) step += stride;
  const int64_t offset = static_cast<char*>(a.raw_data()) - static_cast<char*>(a.storage()->data);
  return Array::from_storage(a.storage(), offset, {*least}, {step}, a.dtype());
}

}  // namespace

Array take_along_axis(const Array& a, const Array& indices, OptionalAxis axis, OutOfRange mode) {
  const EntryScope call("take_along_axis");
  if (!axis) return take_along_axis(a.ravel(), indices.ravel(), 0, mode);
  const int ax = normalize_axis(*axis, a.ndim());
  const auto entries = line_positions(a, indices, ax);
  return index_get(a, std::span<const AnyIndex>(entries), mode);
}

void put_along_axis(const Array& a, const Array& indices, const Operand& values, OptionalAxis axis,
                    OutOfRange mode) {
  const EntryScope call("put_along_axis");
  if (!axis) {
    const Array flat = a.reshape({-1});
    put_along_axis(flat, indices.ravel(), values, 0, mode);
    if (flat.storage() != a.storage()) a.assign(flat.reshape(a.shape()));
    return;
  }
  const int ax = normalize_axis(*axis, a.ndim());
  const auto entries = line_positions(a, indices, ax);
  index_put(a, std::span<const AnyIndex>(entries), values, mode);
}

void putmask(const Array& a, const Array& mask, const Operand& values) {
  const EntryScope call("putmask");
  check_mask(a, mask);
  const Array list = as_values(a, values);
  if (a.size() == 0) return;
  CATENA_CHECK(ValueError, list.size() > 0, "no values for ", a.size(), " elements");
  const Array all = list.size() == 1 ? list : resize(list, a.shape());
  const Array where = mask.astype(Dtype::kBool, false);
  copyto(a, all, Casting::kUnsafe, where);
}

void place(const Array& a, const Array& mask, const Array& values) {
  const EntryScope call("place");
  check_mask(a, mask);
  const Array list = as_values(a, values), positions = flatnonzero(mask);
  if (positions.size() == 0) return;
  CATENA_CHECK(ValueError, list.size() > 0, "no values for ", positions.size(), " true positions");
  put(a, positions, resize(list, {positions.size()}), OutOfRange::kWrap);
}

void fill_diagonal(const Array& a, const Operand& values, bool wrap) {
  const EntryScope call("fill_diagonal");
  check_writable(a);
  const Array diagonal = main_diagonal(a), list = as_values(a, values);
  if (a.size() == 0) return;
  CATENA_CHECK(ValueError, list.size() > 0, "no values for the diagonal");
  const int64_t rows = a.shape(0), columns = a.shape(-1);
  if (!wrap || a.ndim() > 2 || rows <= columns + 1) {
    diagonal.assign(list.size() == 1 ? list : resize(list, diagonal.shape()));
    return;
  }
  const Array positions = arange(0, rows * columns, columns + 1, a.device());
  put(a, positions, resize(list, positions.shape()), OutOfRange::kWrap);
}

std::vector<Array> tril_indices(int64_t n, int64_t k, std::optional<int64_t> m,
                                std::optional<Device> device) {
  const EntryScope call("tril_indices");
  return nonzero(tri(n, m, k, {Dtype::kBool, device.value_or(current_device())}));
}

std::vector<Array> triu_indices(int64_t n, int64_t k, std::optional<int64_t> m,
                                std::optional<Device> device) {
  const EntryScope call("triu_indices");
  return nonzero(logical_not(tri(n, m, k - 1, {Dtype::kBool, device.value_or(current_device())})));
}

std::vector<Array> diag_indices(int64_t n, int ndim, std::optional<Device> device) {
  const EntryScope call("diag_indices");
  CATENA_CHECK(ValueError, ndim >= 1, "expected at least one axis, got ", ndim);
  return std::vector<Array>(size_t(ndim), arange(n, device.value_or(current_device())));
}

Array indices(const Shape& shape, std::optional<Device> device) {
  const EntryScope call("indices");
  Shape full = shape;
  full.insert(full.begin(), shape.ndim());
  const Array result = empty(full, {Dtype::kInt64, device.value_or(current_device())});
  for (size_t d = 0; d < shape.size(); ++d)
    result[int64_t(d)].assign(along(arange(shape[d], result.device()), d, shape.size()));
  return result;
}

std::vector<Array> ix_(std::span<const Array> lists) {
  const EntryScope call("ix_");
  std::vector<Array> result;
  for (size_t k = 0; k < lists.size(); ++k) {
    CATENA_CHECK(ShapeError, lists[k].ndim() == 1, "expected 1-d arrays, got shape ",
                 lists[k].shape());
    const Array positions = lists[k].dtype() == Dtype::kBool ? flatnonzero(lists[k]) : lists[k];
    result.push_back(along(positions, k, lists.size()));
  }
  return result;
}
std::vector<Array> ix_(std::initializer_list<Array> lists) {
  const EntryScope call("ix_");
  return ix_(std::span<const Array>(lists.begin(), lists.size()));
}

Array select(std::span<const Array> conditions, std::span<const Array> choices,
             const Operand& otherwise) {
  const EntryScope call("select");
  CATENA_CHECK(ValueError, conditions.size() == choices.size() && !choices.empty(),
               conditions.size(), " conditions for ", choices.size(),
               " choices; expected as many, at least one");
  Dtype dtype = choices.front().dtype();
  for (const Array& choice : choices) dtype = promote(dtype, choice.dtype());
  dtype = otherwise.array() ? promote(dtype, otherwise.array()->dtype())
                            : promote(dtype, otherwise.scalar());
  const Device device = choices.front().device();
  Array result = otherwise.array() ? otherwise.array()->astype(dtype, false)
                                   : full({}, otherwise.scalar(), {dtype, device});
  for (size_t k = choices.size(); k-- > 0;) {
    CATENA_CHECK(DtypeError, conditions[k].dtype() == Dtype::kBool,
                 "expected conditions of bool, got ", conditions[k].dtype());
    result = where(conditions[k], choices[k].astype(dtype, false), result);
  }
  return result;
}
Array select(std::initializer_list<Array> conditions, std::initializer_list<Array> choices,
             const Operand& otherwise) {
  const EntryScope call("select");
  return select(std::span<const Array>(conditions.begin(), conditions.size()),
                std::span<const Array>(choices.begin(), choices.size()), otherwise);
}

namespace {

// Calls the user's function, outside this EntryScope so that errors are the function's own.
Array call_back(const std::function<Array(const Array&)>& function, const Array& x) {
  const CallbackScope callback;
  return function(x);
}

// Where no condition is true.
Array none_of(const Array& x, std::span<const Array> conditions) {
  Array found = zeros(x.shape(), {Dtype::kBool, x.device()});
  for (const Array& condition : conditions) found = logical_or(found, condition);
  return logical_not(found);
}

void put_number(const Array& y, const Array& mask, const Scalar& number) {
  copyto(y, number, Casting::kUnsafe, mask);
}

void put_piece(const Array& y, const Array& x, const Array& mask, const Piece& piece) {
  if (!piece.function()) {
    put_number(y, mask, piece.number());
    return;
  }
  const Array positions = flatnonzero(mask);
  if (positions.size() == 0) return;
  const Array values =
      call_back(piece.function(), take(x.ravel(), positions, 0, OutOfRange::kWrap));
  check_defined(values);
  check_same_device(x, values);
  CATENA_CHECK(ShapeError, values.ndim() == 0 || values.shape() == positions.shape(),
               "a function made shape ", values.shape(), " of ", positions.size(), " elements");
  put(y, positions, values, OutOfRange::kWrap);
}

}  // namespace

Array piecewise(const Array& x, std::span<const Array> conditions, std::span<const Piece> pieces) {
  const EntryScope call("piecewise");
  const size_t n = conditions.size();
  CATENA_CHECK(ValueError, n > 0 && (pieces.size() == n || pieces.size() == n + 1), pieces.size(),
               " pieces for ", n, " conditions; expected as many, or one more for the rest");
  std::vector<Array> masks;
  for (const Array& condition : conditions) {
    check_same_device(x, condition);
    CATENA_CHECK(DtypeError, condition.dtype() == Dtype::kBool, "expected conditions of bool, got ",
                 condition.dtype());
    const Shape wide = broadcast_shapes(x.shape(), condition.shape());
    CATENA_CHECK(ShapeError, wide == x.shape(), "a condition of shape ", condition.shape(),
                 " for an array of shape ", x.shape());
    masks.push_back(condition.broadcast_to(x.shape()));
  }
  const Array y = zeros(x.shape(), {x.dtype(), x.device()});
  for (size_t k = 0; k < n; ++k) put_piece(y, x, masks[k], pieces[k]);
  if (pieces.size() > n) put_piece(y, x, none_of(x, masks), pieces[n]);
  return y;
}
Array piecewise(const Array& x, std::initializer_list<Array> conditions,
                std::initializer_list<Piece> pieces) {
  return piecewise(x, std::span<const Array>(conditions.begin(), conditions.size()),
                   std::span<const Piece>(pieces.begin(), pieces.size()));
}

Array apply_along_axis(const std::function<Array(const Array&)>& function, Axis axis,
                       const Array& a) {
  const EntryScope call("apply_along_axis");
  const int ax = normalize_axis(axis, a.ndim());
  const Array moved = moveaxis(a, ax, -1);
  Shape outer = moved.shape();
  outer.pop_back();
  const int64_t count = element_count(outer);
  CATENA_CHECK(ValueError, count > 0, "no line along axis ", ax, " of shape ", a.shape());
  const Array lines = moved.reshape({count, a.shape(ax)});
  std::vector<Array> results;
  for (int64_t k = 0; k < count; ++k) {
    results.push_back(call_back(function, lines[k]));
    check_defined(results.back());
    const Array &first = results.front(), &now = results.back();
    CATENA_CHECK(ShapeError, now.shape() == first.shape(), "the function made shapes ",
                 first.shape(), " and ", now.shape());
    CATENA_CHECK(DtypeError, now.dtype() == first.dtype(), "the function made dtypes ",
                 first.dtype(), " and ", now.dtype());
  }
  const Shape inner = results.front().shape();
  Shape wide = outer;
  wide.insert(wide.end(), inner.begin(), inner.end());
  Array result = stack(results).reshape(wide);
  for (int d = 0; d < inner.ndim(); ++d) result = moveaxis(result, outer.ndim() + d, ax + d);
  return result.contiguous();
}

Array trim_zeros(const Array& a, TrimEnds ends) {
  const EntryScope call("trim_zeros");
  CATENA_CHECK(ShapeError, a.ndim() == 1, "expected a 1-d array, got shape ", a.shape());
  const Array positions = flatnonzero(a);
  const int64_t n = positions.size();
  if (n == 0) return a(Slice(0, 0));
  const int64_t first = ends == TrimEnds::kBack ? 0 : positions[0].item<int64_t>(),
                final = ends == TrimEnds::kFront ? a.size() - 1 : positions[n - 1].item<int64_t>();
  return a(Slice(first, final + 1));
}

}  // namespace catena
