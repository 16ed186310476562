#include "catena/array/indexing.h"

#include <algorithm>

#include "array/positions.h"
#include "array/result_into.h"
#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/array/scan.h"
#include "catena/core/dtype_info.h"
#include "catena/core/entry_scope.h"
#include "catena/kernels/index.h"

namespace catena {
namespace {

// Writes a result into the array that the caller gave, if any; cast as numpy's same_kind allows.
Array finish_into(const Array& result, const Array* out) {
  if (out == nullptr) return result;
  CATENA_CHECK(ShapeError, out->shape() == result.shape(), "the output has shape ", out->shape(),
               ", the result has ", result.shape());
  CATENA_CHECK(DtypeError, can_cast(result.dtype(), out->dtype(), Casting::kSameKind),
               "the result has dtype ", result.dtype(), ", which cannot be cast to the output's ",
               out->dtype(), " (same_kind); give an output of dtype ", result.dtype(),
               " or cast the result");
  check_same_device(result, *out);
  out->assign(result);
  return *out;
}

}  // namespace

Array take(const Array& a, const Array& indices, OptionalAxis axis, OutOfRange mode,
           const Out& given) {
  const EntryScope call("take");
  const Array* const out = destination(given);
  const Array x = (axis ? a : a.ravel()).contiguous();
  const int ax = axis ? normalize_axis(*axis, x.ndim()) : 0;
  const Array positions = integer_positions(x.device(), indices).contiguous().reshape({-1});
  const int64_t extent = x.shape()[ax];
  CATENA_CHECK(IndexError, extent > 0 || positions.size() == 0, "cannot take from an empty axis");
  if (mode == OutOfRange::kRaise) check_positions(positions, extent, ax);
  int64_t outer = 1, inner = 1;
  Shape shape;
  for (int i = 0; i < ax; ++i) {
    outer *= x.shape()[i];
    shape.push_back(x.shape()[i]);
  }
  shape.insert(shape.end(), indices.shape().begin(), indices.shape().end());
  for (int i = ax + 1; i < x.ndim(); ++i) {
    inner *= x.shape()[i];
    shape.push_back(x.shape()[i]);
  }
  const bool direct = out && out->shape() == shape && out->dtype() == x.dtype() &&
                      out->device() == x.device() && out->is_contiguous() &&
                      !out->shares_memory_with(x) && !out->shares_memory_with(positions);
  if (direct) check_writable(*out);
  const Array result = direct ? *out : Array::uninitialized(shape, x.dtype(), x.device());
  if (result.size() > 0) {
    kernels::take(x.device(),
                  {x.reshape({outer, extent, inner}), positions, static_cast<uint8_t>(mode),
                   result.reshape({outer, positions.size(), inner})});
  }
  if (!direct) return finish_into(result, out);
  result.note_write();
  return result;
}

Array take(const Array& a, int64_t index, OptionalAxis axis, OutOfRange mode, const Out& given) {
  const EntryScope call("take");
  const Array* const out = destination(given);
  const Array x = axis ? a : a.ravel();
  const int ax = axis ? normalize_axis(*axis, x.ndim()) : 0;
  const int64_t extent = x.shape()[ax];
  CATENA_CHECK(IndexError, extent > 0, "cannot take from an empty axis");
  if (mode == OutOfRange::kWrap) index = ((index % extent) + extent) % extent;
  if (mode == OutOfRange::kClip) index = std::clamp<int64_t>(index, 0, extent - 1);
  CATENA_CHECK(IndexError, index >= -extent && index < extent, "position ", index,
               " is out of bounds for axis ", ax, " of extent ", extent);
  std::vector<Index> entries(size_t(ax) + 1, Slice());
  entries.back() = index;
  const Array view = x.at(std::span<const Index>(entries));
  return out ? finish_into(view, out) : view.copy();
}

Array take(const Array& a, const std::vector<int64_t>& indices, OptionalAxis axis, OutOfRange mode,
           const Out& out) {
  return take(a, array(indices, a.device()), axis, mode, out);
}
Array take(const Array& a, std::initializer_list<int64_t> indices, OptionalAxis axis,
           OutOfRange mode, const Out& out) {
  return take(a, array(indices, a.device()), axis, mode, out);
}

void put(const Array& a, const Array& indices, const Operand& operand, OutOfRange mode) {
  const EntryScope call("put");
  const Array positions = integer_positions(a.device(), indices).contiguous().reshape({-1});
  if (positions.size() == 0) return;
  const Array values =
      operand.array() ? *operand.array() : full({}, operand.scalar(), {a.dtype(), a.device()});
  CATENA_CHECK(ValueError, values.size() > 0, "no values for ", positions.size(), " positions");
  Array v = values.ravel();
  if (v.size() < positions.size() && v.size() > 1) v = tile(v, {positions.size() / v.size() + 1});
  if (v.size() > positions.size()) v = v(Slice(0, positions.size()));
  // An array that has no flat view is written through a copy.
  const Array flat = a.reshape({-1});
  const AnyIndex where(positions);
  index_put(flat, {&where, 1}, v, mode);
  if (flat.storage() != a.storage()) a.assign(flat.reshape(a.shape()));
}

void scatter_add(const Array& a, const Array& indices, const Operand& values, Axis axis,
                 OutOfRange mode) {
  const EntryScope call("scatter_add");
  std::vector<AnyIndex> entries(size_t(normalize_axis(axis, a.ndim())), AnyIndex(Slice()));
  CATENA_CHECK(DtypeError, is_int(indices.dtype()), "positions must be integers, got ",
               indices.dtype());
  entries.emplace_back(indices);
  index_add(a, entries, values, mode);
}

Array compress(const Array& condition, const Array& a, OptionalAxis axis) {
  const EntryScope call("compress");
  CATENA_CHECK(ShapeError, condition.ndim() == 1, "expected a 1-d condition, got shape ",
               condition.shape());
  const Array x = axis ? a : a.ravel();
  const int ax = axis ? normalize_axis(*axis, x.ndim()) : 0;
  const Array positions = flatnonzero(condition);
  const bool longer = condition.size() > x.shape()[ax];
  // A longer condition is allowed if all its elements beyond the axis are false.
  return take(x, positions, ax, longer ? OutOfRange::kRaise : OutOfRange::kWrap);
}

Array extract(const Array& condition, const Array& a) {
  const EntryScope call("extract");
  CATENA_CHECK(ShapeError, condition.size() == a.size(), "a condition of shape ", condition.shape(),
               " for an array of shape ", a.shape());
  return take(a, flatnonzero(condition), {}, OutOfRange::kWrap);
}

Array ravel_multi_index(std::span<const Array> indices, const Shape& shape, OutOfRange mode) {
  const EntryScope call("ravel_multi_index");
  CATENA_CHECK(ValueError, int64_t(indices.size()) == shape.ndim() && !indices.empty(),
               indices.size(), " arrays for shape ", shape);
  Array flat;
  for (size_t k = 0; k < indices.size(); ++k) {
    const Array p = integer_positions(indices[0].device(), indices[k]);
    if (mode == OutOfRange::kRaise && p.size() > 0) {
      const auto low = amin(p).item<int64_t>(), high = amax(p).item<int64_t>();
      CATENA_CHECK(IndexError, low >= 0 && high < shape[k], "position ", low < 0 ? low : high,
                   " is out of bounds for axis ", k, " of shape ", shape);
    }
    const Array inside = mode == OutOfRange::kRaise ? p.astype(Dtype::kInt64, false)
                                                    : wrapped_positions(p, shape[k], mode);
    flat = flat.defined() ? add(multiply(flat, shape[k]), inside) : inside;
  }
  return flat;
}

std::vector<Array> unravel_index(const Array& indices, const Shape& shape) {
  const EntryScope call("unravel_index");
  Array rest = integer_positions(indices.device(), indices).astype(Dtype::kInt64, false);
  if (rest.size() > 0) {
    const auto low = amin(rest).item<int64_t>(), high = amax(rest).item<int64_t>();
    const int64_t size = element_count(shape);
    CATENA_CHECK(IndexError, low >= 0 && high < size, "position ", low < 0 ? low : high,
                 " is out of bounds for an array of ", size, " elements");
  }
  return unravel_known(rest, shape);
}

std::vector<Array> unravel_known(const Array& positions, const Shape& shape) {
  std::vector<Array> result(shape.size());
  Array rest = positions;
  for (size_t k = shape.size(); k-- > 0;) {
    if (k == 0) {
      result[0] = rest;
      break;
    }
    result[k] = remainder(rest, shape[k]);
    rest = floor_divide(rest, shape[k]);
  }
  return result;
}

Array choose(const Array& a, std::span<const Array> choices) {
  const EntryScope call("choose");
  CATENA_CHECK(ValueError, !choices.empty(), "expected at least one choice");
  const Array which = integer_positions(a.device(), a);
  std::vector<Array> all(choices.begin(), choices.end());
  all.push_back(a);
  const auto views = broadcast_arrays(all);
  if (views.back().size() > 0) {  // as in NumPy, positions that choose nothing are not checked
    const auto low = amin(which).item<int64_t>(), high = amax(which).item<int64_t>();
    CATENA_CHECK(IndexError, low >= 0 && high < static_cast<int64_t>(choices.size()),
                 low < 0 ? low : high, " is out of bounds for ", choices.size(), " choices");
  }
  Array result = views.front();
  for (size_t k = 1; k < choices.size(); ++k)
    result = where(equal(views.back(), static_cast<int64_t>(k)), views[k], result);
  return choices.size() == 1 ? result.copy() : result;
}

}  // namespace catena
