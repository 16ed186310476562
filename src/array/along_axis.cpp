#include "catena/array/along_axis.h"

#include <algorithm>

#include "array/positions.h"
#include "catena/array/casting.h"
#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/scan.h"

namespace catena {
namespace {

// A 1-d array along axis `axis` of `ndim`.
Array along(const Array& line, size_t axis, size_t ndim) {
  Shape shape(ndim, 1);
  shape[axis] = line.size();
  return line.reshape(shape);
}

// The positions along an axis with those of all other axes beside them.
std::vector<AnyIndex> line_positions(const char* who, const Array& a, const Array& indices,
                                     int axis) {
  CATENA_CHECK(ShapeError, indices.ndim() == a.ndim(), who, ": positions of shape ",
               indices.shape(), " for an array of shape ", a.shape(), "; expected as many axes");
  std::vector<AnyIndex> entries;
  for (int d = 0; d < a.ndim(); ++d) {
    if (d == axis) {
      entries.emplace_back(integer_positions(who, a.device(), indices));
      continue;
    }
    entries.emplace_back(along(arange(a.shape(d), a.device()), size_t(d), size_t(a.ndim())));
  }
  return entries;
}

// Values as an array of a's dtype.
Array as_values(const char* who, const Array& a, const Operand& operand) {
  if (operand.array() == nullptr) return full({1}, operand.scalar(), {a.dtype(), a.device()});
  check_same_device(who, a, *operand.array());
  return operand.array()->ravel().astype(a.dtype(), false);
}

void check_mask(const char* who, const Array& a, const Array& mask) {
  check_same_device(who, a, mask);
  CATENA_CHECK(ShapeError, mask.shape() == a.shape(), who, ": a mask of shape ", mask.shape(),
               " for an array of shape ", a.shape());
}

// The elements [i, i, ..., i] as a 1-d view.
Array main_diagonal(const Array& a) {
  CATENA_CHECK(ShapeError, a.ndim() >= 2, "fill_diagonal: expected at least 2 axes, got shape ",
               a.shape());
  const auto [least, most] = std::minmax_element(a.shape().begin(), a.shape().end());
  CATENA_CHECK(ShapeError, a.ndim() == 2 || *least == *most,
               "fill_diagonal: more than 2 axes must have one extent, got shape ", a.shape());
  int64_t step = 0;
  for (int64_t stride : a.strides()) step += stride;
  const int64_t offset = static_cast<char*>(a.raw_data()) - static_cast<char*>(a.storage()->data);
  return Array::from_storage(a.storage(), offset, {*least}, {step}, a.dtype());
}

}  // namespace

Array take_along_axis(const Array& a, const Array& indices, std::optional<int64_t> axis,
                      OutOfRange mode) {
  if (!axis) return take_along_axis(a.ravel(), indices.ravel(), 0, mode);
  const int ax = normalize_axis("take_along_axis", *axis, a.ndim());
  const auto entries = line_positions("take_along_axis", a, indices, ax);
  return index_get(a, std::span<const AnyIndex>(entries), mode);
}

void put_along_axis(const Array& a, const Array& indices, const Operand& values,
                    std::optional<int64_t> axis, OutOfRange mode) {
  if (!axis) {
    const Array flat = a.reshape({-1});
    put_along_axis(flat, indices.ravel(), values, 0, mode);
    if (flat.storage() != a.storage()) a.assign(flat.reshape(a.shape()));
    return;
  }
  const int ax = normalize_axis("put_along_axis", *axis, a.ndim());
  const auto entries = line_positions("put_along_axis", a, indices, ax);
  index_put(a, std::span<const AnyIndex>(entries), values, mode);
}

void putmask(const Array& a, const Array& mask, const Operand& values) {
  check_mask("putmask", a, mask);
  const Array list = as_values("putmask", a, values);
  if (a.size() == 0) return;
  CATENA_CHECK(ValueError, list.size() > 0, "putmask: no values for ", a.size(), " elements");
  const Array all = list.size() == 1 ? list : resize(list, a.shape());
  const Array where = mask.astype(Dtype::kBool, false);
  copyto(a, all, Casting::kUnsafe, &where);
}

void place(const Array& a, const Array& mask, const Array& values) {
  check_mask("place", a, mask);
  const Array list = as_values("place", a, values), positions = flatnonzero(mask);
  if (positions.size() == 0) return;
  CATENA_CHECK(ValueError, list.size() > 0, "place: no values for ", positions.size(),
               " true positions");
  put(a, positions, resize(list, {positions.size()}), OutOfRange::kWrap);
}

void fill_diagonal(const Array& a, const Operand& values, bool wrap) {
  check_writable("fill_diagonal", a);
  const Array diagonal = main_diagonal(a), list = as_values("fill_diagonal", a, values);
  if (a.size() == 0) return;
  CATENA_CHECK(ValueError, list.size() > 0, "fill_diagonal: no values for the diagonal");
  const int64_t rows = a.shape(0), columns = a.shape(-1);
  if (!wrap || a.ndim() > 2 || rows <= columns + 1) {
    diagonal.assign(list.size() == 1 ? list : resize(list, diagonal.shape()));
    return;
  }
  const Array positions = arange(0, rows * columns, columns + 1, a.device());
  put(a, positions, resize(list, positions.shape()), OutOfRange::kWrap);
}

std::vector<Array> tril_indices(int64_t n, int64_t k, int64_t m, std::optional<Device> device) {
  return nonzero(tri(n, m, k, {Dtype::kBool, device.value_or(current_device())}));
}

std::vector<Array> triu_indices(int64_t n, int64_t k, int64_t m, std::optional<Device> device) {
  return nonzero(logical_not(tri(n, m, k - 1, {Dtype::kBool, device.value_or(current_device())})));
}

std::vector<Array> diag_indices(int64_t n, int ndim, std::optional<Device> device) {
  CATENA_CHECK(ValueError, ndim >= 1, "diag_indices: expected at least one axis, got ", ndim);
  return std::vector<Array>(size_t(ndim), arange(n, device.value_or(current_device())));
}

Array indices(const Shape& shape, std::optional<Device> device) {
  Shape full = shape;
  full.insert(full.begin(), shape.ndim());
  const Array result = empty(full, {Dtype::kInt64, device.value_or(current_device())});
  for (size_t d = 0; d < shape.size(); ++d)
    result[int64_t(d)].assign(along(arange(shape[d], result.device()), d, shape.size()));
  return result;
}

std::vector<Array> ix_(std::span<const Array> lists) {
  std::vector<Array> result;
  for (size_t k = 0; k < lists.size(); ++k) {
    CATENA_CHECK(ShapeError, lists[k].ndim() == 1, "ix_: expected 1-d arrays, got shape ",
                 lists[k].shape());
    const Array positions = lists[k].dtype() == Dtype::kBool ? flatnonzero(lists[k]) : lists[k];
    result.push_back(along(positions, k, lists.size()));
  }
  return result;
}
std::vector<Array> ix_(std::initializer_list<Array> lists) {
  return ix_(std::span<const Array>(lists.begin(), lists.size()));
}

Array select(std::span<const Array> conditions, std::span<const Array> choices,
             const Operand& otherwise) {
  CATENA_CHECK(ValueError, conditions.size() == choices.size() && !choices.empty(),
               "select: ", conditions.size(), " conditions for ", choices.size(),
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
                 "select: expected conditions of bool, got ", conditions[k].dtype());
    result = where(conditions[k], choices[k].astype(dtype, false), result);
  }
  return result;
}
Array select(std::initializer_list<Array> conditions, std::initializer_list<Array> choices,
             const Operand& otherwise) {
  return select(std::span<const Array>(conditions.begin(), conditions.size()),
                std::span<const Array>(choices.begin(), choices.size()), otherwise);
}

}  // namespace catena
