// index_get, index_put, index_add: NumPy's indexing with arrays and masks.
#include <algorithm>

#include "array/selection.h"
#include "catena/array/creation.h"
#include "catena/array/elementwise.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/core/config.h"
#include "catena/core/entry_scope.h"
#include "catena/kernels/elementwise_ops.h"
#include "catena/kernels/index.h"

namespace catena {
namespace {

// A view of `a` with other extents and strides.
Array restride(const Array& a, const Shape& shape, const Strides& strides) {
  const int64_t offset = static_cast<char*>(a.raw_data()) - static_cast<char*>(a.storage()->data);
  return Array::from_storage(a.storage(), offset, shape, strides, a.dtype());
}

// Combines `lists[first...]` into one list of byte offsets, for more lists than a kernel takes.
PositionList fold_lists(const Selection& s, size_t first, OutOfRange mode) {
  Array offsets;
  for (size_t k = first; k < s.lists.size(); ++k) {
    const Array bytes = multiply(wrapped_positions(s.lists[k].array, s.lists[k].extent, mode),
                                 s.base.strides()[size_t(s.axes[k])]);
    offsets = offsets.defined() ? add(offsets, bytes) : bytes;
  }
  return {offsets, 0, s.lists[first].axis, true};
}

// Owns the views a SelectCall points to.
struct PreparedSelect {
  Array base;
  Array positions[kMaxPositionLists];
  SelectCall call{};
};

void prepare_lists(const Selection& s, OutOfRange mode, PreparedSelect& p) {
  std::vector<PositionList> lists = s.lists;
  std::vector<int64_t> strides;
  for (int axis : s.axes) strides.push_back(s.base.strides()[size_t(axis)]);
  if (lists.size() > size_t(kMaxPositionLists)) {
    const size_t kept = kMaxPositionLists - 1;
    const PositionList rest = fold_lists(s, kept, mode);
    lists.resize(kept);
    for (PositionList& list : lists) list.array = list.array.astype(Dtype::kInt64, false);
    lists.push_back(rest);
    strides[kept] = 1;
  }
  const Shape shape = s.shape();
  p.call.count = static_cast<int>(lists.size());
  for (size_t k = 0; k < lists.size(); ++k) {
    const Array spread = lists[k].array.broadcast_to(s.broadcast);
    Strides along(shape.size(), 0);
    std::copy(spread.strides().begin(), spread.strides().end(), along.begin() + s.place);
    p.positions[k] = restride(spread, shape, along);
    p.call.positions[k] = &p.positions[k];
    p.call.extents[k] = lists[k].extent;
    p.call.strides[k] = strides[k];
  }
}

// The call for `values` of the selection's shape.
void prepare(const Selection& s, OutOfRange mode, const Array& values, PreparedSelect& p) {
  Strides strides;
  for (int d = 0; d < s.base.ndim(); ++d) {
    if (std::find(s.axes.begin(), s.axes.end(), d) == s.axes.end())
      strides.push_back(s.base.strides()[size_t(d)]);
  }
  strides.insert(strides.begin() + s.place, s.broadcast.size(), 0);
  p.base = restride(s.base, s.shape(), strides);
  p.call.values = &values;
  p.call.base = &p.base;
  p.call.mode = static_cast<uint8_t>(mode);
  prepare_lists(s, mode, p);
}

// (outer, extent, inner) around one axis.
Shape around_axis(const Shape& shape, int axis) {
  Shape result{1, shape[size_t(axis)], 1};
  for (int d = 0; d < shape.ndim(); ++d) {
    if (d != axis) result[d < axis ? 0 : 2] *= shape[size_t(d)];
  }
  return result;
}

// Whether one list takes slices from a contiguous array, which is the case of the take slot.
bool is_plain_take(const Selection& s) {
  return s.lists.size() == 1 && s.base.is_contiguous() && s.place == s.axes[0] &&
         s.lists[0].array.is_contiguous();
}

// The target of writes with the selected axes merged into the middle one of (outer, extent, inner),
// and positions and values to match. Kernels with a rule for repeated positions need it.
struct MergedTarget {
  Array target;     // contiguous
  Array positions;  // 1-d
  Array values;     // (outer, positions, inner), contiguous
  Array moved;  // the view of base into which `target` is copied back; undefined if `target` is a
                // view
};

Array flat_positions(const Selection& s, OutOfRange mode) {
  Array flat;
  if (s.lists.size() == 1) {
    flat = s.lists[0].array;
  } else {
    for (const PositionList& list : s.lists) {
      const Array p = wrapped_positions(list.array, list.extent, mode);
      flat = flat.defined() ? add(multiply(flat, list.extent), p) : p;
    }
  }
  return flat.broadcast_to(s.broadcast).contiguous().reshape({-1});
}

MergedTarget merge_target(const Selection& s, OutOfRange mode, const Array& values) {
  MergedTarget m;
  const int count = static_cast<int>(s.axes.size()), first = s.axes[0];
  const bool adjacent = s.axes.back() - first == count - 1 && s.place == first;
  m.positions = flat_positions(s, mode);
  int64_t extent = 1;
  for (int axis : s.axes) extent *= s.base.shape()[size_t(axis)];
  const Shape rest = s.rest();
  int64_t outer = 1, inner = 1;
  if (adjacent && s.base.is_contiguous()) {
    for (int d = 0; d < rest.ndim(); ++d) (d < first ? outer : inner) *= rest[size_t(d)];
    m.target = s.base.reshape({outer, extent, inner});
    m.values = values.contiguous().reshape({outer, m.positions.size(), inner});
    return m;
  }
  Axes order(s.axes.begin(), s.axes.end());
  for (int d = 0; d < s.base.ndim(); ++d) {
    if (std::find(s.axes.begin(), s.axes.end(), d) == s.axes.end()) order.push_back(d);
  }
  inner = element_count(rest);
  m.moved = s.base.transpose(order);
  m.target = m.moved.copy().reshape({1, extent, inner});
  Array v = values;  // moves the broadcast axes to the front
  for (int d = 0; d < s.broadcast.ndim(); ++d) v = moveaxis(v, s.place + d, d);
  m.values = v.contiguous().reshape({1, m.positions.size(), inner});
  return m;
}

void bring_back(const MergedTarget& m) {
  if (m.moved.defined()) m.moved.assign(m.target.reshape(m.moved.shape()));
}

// The right-hand side as an array of the target's dtype and of the selection's shape.
Array values_for(const Array& a, const Operand& values, const Shape& shape) {
  Array v;
  if (values.array()) {
    CATENA_CHECK(ValueError, values.array()->defined(), "the values are undefined");
    check_same_device(a, *values.array());
    v = values.array()->astype(a.dtype(), false);
    if (v.shares_memory_with(a)) v = v.copy();
  } else {
    check_fits(values.scalar(), a.dtype());
    v = full({}, values.scalar(), {a.dtype(), a.device()});
  }
  while (v.ndim() > shape.ndim() && v.shape()[0] == 1) v = v[0];  // as in any assignment
  if (v.size() != 1 && !v.is_contiguous()) v = v.copy();  // fixes the order of repeated positions
  CATENA_CHECK(ShapeError, broadcast_shapes(v.shape(), shape) == shape, "values of shape ",
               v.shape(), " do not broadcast to the indexed shape ", shape);
  return v.broadcast_to(shape);
}

// a[mask] = one value is written with where(), which need not count the true elements.
bool put_by_mask(const Array& a, std::span<const AnyIndex> indices, const Operand& values) {
  if (indices.size() != 1 || !indices[0].is_array()) return false;
  const Array& mask = indices[0].array();
  const bool one = !values.array() || (values.array()->defined() && values.array()->ndim() == 0);
  if (!one || mask.dtype() != Dtype::kBool || mask.device() != a.device() || mask.ndim() == 0 ||
      mask.ndim() > a.ndim() || mask.shares_memory_with(a)) {
    return false;
  }
  if (!std::equal(mask.shape().begin(), mask.shape().end(), a.shape().begin())) return false;
  Shape spread = mask.shape();
  spread.resize(a.shape().size(), 1);
  const Array value = values_for(a, values, {});
  elementwise(ops::where, {mask.reshape(spread), value, a}, a);
  return true;
}

// Positions stored in memory that the write will change are copied first.
void separate_lists(Selection& s) {
  for (PositionList& list : s.lists) {
    if (list.array.shares_memory_with(s.base) ||
        (s.broadcast.ndim() > 1 && list.array.ndim() > 1 && !list.array.is_contiguous()))
      list.array = list.array.copy();
  }
}

std::span<const AnyIndex> span_of(std::initializer_list<AnyIndex> indices) {
  return {indices.begin(), indices.size()};
}

// The basic entries, if there is no array among them.
bool all_basic(std::span<const AnyIndex> indices, std::vector<Index>& basic) {
  for (const AnyIndex& index : indices) {
    if (index.is_array()) return false;
    basic.push_back(index.basic());
  }
  return true;
}

}  // namespace

AnyIndex::AnyIndex(const Array& positions) : basic_(Slice()), array_(positions) {
  const EntryScope call("index");
  check_defined(positions);
}
AnyIndex::AnyIndex(const std::vector<int64_t>& positions)
    : basic_(Slice()), array_(catena::array(positions, cpu(0))), on_host_(true) {}

Array index_get(const Array& a, std::span<const AnyIndex> indices, OutOfRange mode) {
  const EntryScope call("index_get");
  if (std::vector<Index> basic; all_basic(indices, basic))
    return a.at(std::span<const Index>(basic)).copy();
  const Selection s = resolve_selection(a, indices, mode);
  const Array result = Array::uninitialized(s.shape(), a.dtype(), a.device());
  if (result.size() == 0) return result;
  if (is_plain_take(s)) {
    Shape flat = around_axis(s.base.shape(), s.axes[0]), slices = flat;
    slices[1] = s.lists[0].array.size();
    kernels::take(a.device(), {s.base.reshape(flat), s.lists[0].array.reshape({-1}),
                               static_cast<uint8_t>(mode), result.reshape(slices)});
    return result;
  }
  PreparedSelect p;
  prepare(s, mode, result, p);
  kernels::gather(a.device(), p.call);
  return result;
}

void index_put(const Array& a, std::span<const AnyIndex> indices, const Operand& values,
               OutOfRange mode) {
  const EntryScope call("index_put");
  check_writable(a);
  if (std::vector<Index> basic; all_basic(indices, basic)) {
    const Array target = a.at(std::span<const Index>(basic));
    return values.array() ? target.assign(*values.array()) : target.fill(values.scalar());
  }
  if (put_by_mask(a, indices, values)) return;
  Selection s = resolve_selection(a, indices, mode);
  const Array v = values_for(a, values, s.shape());
  if (v.size() == 0) return;
  separate_lists(s);
  PreparedSelect p;
  if (config().deterministic && s.may_repeat && !a.device().is_cpu()) {
    // One list along one axis: the kernel then finds the last value for each element.
    const MergedTarget m = merge_target(s, mode, v);
    Selection flat;
    flat.base = m.target;
    flat.lists = {{m.positions, m.target.shape()[1], 0, true}};
    flat.axes = {1};
    flat.broadcast = m.positions.shape();
    flat.place = 1;
    prepare(flat, mode, m.values, p);
    kernels::scatter(a.device(), p.call);
    bring_back(m);
  } else {
    prepare(s, mode, v, p);
    if (!s.may_repeat) p.call.extents[0] = 0;
    kernels::scatter(a.device(), p.call);
  }
  a.note_write();
}

void index_add(const Array& a, std::span<const AnyIndex> indices, const Operand& values,
               OutOfRange mode) {
  const EntryScope call("index_add");
  check_writable(a);
  if (std::vector<Index> basic; all_basic(indices, basic)) {
    const Array target = a.at(std::span<const Index>(basic));
    add(target, values_for(target, values, target.shape()), target);
    return;
  }
  Selection s = resolve_selection(a, indices, mode);
  const Array v = values_for(a, values, s.shape());
  if (v.size() == 0) return;
  for (PositionList& list : s.lists) {  // the kernel wraps; clipping happens here
    if (mode == OutOfRange::kClip && !list.in_range)
      list.array = wrapped_positions(list.array, list.extent, mode);
  }
  separate_lists(s);
  const MergedTarget m = merge_target(s, mode, v);
  kernels::scatter_add(a.device(), {m.target, m.positions, m.values});
  bring_back(m);
  a.note_write();
}

Array index_get(const Array& a, std::initializer_list<AnyIndex> indices, OutOfRange mode) {
  return index_get(a, span_of(indices), mode);
}
void index_put(const Array& a, std::initializer_list<AnyIndex> indices, const Operand& values,
               OutOfRange mode) {
  index_put(a, span_of(indices), values, mode);
}
void index_add(const Array& a, std::initializer_list<AnyIndex> indices, const Operand& values,
               OutOfRange mode) {
  index_add(a, span_of(indices), values, mode);
}

Selected Array::select(std::initializer_list<AnyIndex> indices) const {
  const EntryScope call("index");
  return {index_get(*this, indices), *this, indices};
}
Selected Array::operator[](const Array& positions) const { return select({positions}); }
Selected Array::operator[](const std::vector<int64_t>& positions) const {
  return select({positions});
}
void Selected::assign(const Array& values) && {
  const EntryScope call("assign");
  index_put(source_, indices_, values);
}
void Selected::assign(const Scalar& value) && {
  const EntryScope call("assign");
  index_put(source_, indices_, value);
}
void Selected::fill(const Scalar& value) && {
  const EntryScope call("fill");
  index_put(source_, indices_, value);
}
void Selected::write_back() const {
  if (source_.defined()) index_put(source_, indices_, *this);
}
void Array::set_at(std::initializer_list<AnyIndex> indices, const Operand& values) const {
  const EntryScope call("set_at");
  index_put(*this, span_of(indices), values);
}
void Array::add_at(std::initializer_list<AnyIndex> indices, const Operand& values) const {
  const EntryScope call("add_at");
  index_add(*this, span_of(indices), values);
}

}  // namespace catena
