// Turns the entries of an index into lists of positions along axes. See selection.h.
#include "array/selection.h"

#include <algorithm>

#include "catena/array/creation.h"
#include "catena/array/math.h"
#include "catena/array/scan.h"

namespace catena {
namespace {

bool is_mask(const AnyIndex& index) {
  return index.is_array() && index.array().dtype() == Dtype::kBool;
}
int axes_used(const AnyIndex& index) {
  if (index.is_array()) return is_mask(index) ? index.array().ndim() : 1;
  const Index& basic = index.basic();
  return std::holds_alternative<int64_t>(basic) || std::holds_alternative<Slice>(basic);
}

// An array among the entries, and the first axis that it indexes in the view of the basic entries.
struct Pick {
  const AnyIndex* index;
  int view_axis;
  int array_axis;
};

// Visits the entries from left to right.
class Walk {
 public:
  Walk(const Array& a, std::span<const AnyIndex> indices) : a_(a) {
    int used = 0;
    for (const AnyIndex& index : indices) used += axes_used(index);
    CATENA_CHECK(IndexError, used <= a.ndim(), used, " indices for an array of shape ", a.shape());
    unused_ = a.ndim() - used;
    for (const AnyIndex& index : indices) step(index);
  }

  std::vector<Index> basic;
  std::vector<Pick> picks;
  int place() const { return separated_ ? 0 : place_; }

 private:
  void step(const AnyIndex& index) {
    if (index.is_array()) return step_array(index);
    const Index& entry = index.basic();
    if (std::holds_alternative<int64_t>(entry)) {
      note_array();  // beside arrays an integer counts as an array
      basic.push_back(entry);
      ++axis_;
      return;
    }
    if (place_ >= 0) left_ = true;
    basic.push_back(entry);
    int axes = 1;
    if (std::holds_alternative<Ellipsis>(entry)) {
      axes = unused_;
      axis_ += axes;
    } else if (std::holds_alternative<Slice>(entry)) {
      ++axis_;
    }
    view_axis_ += axes;
    result_axis_ += axes;
  }

  void step_array(const AnyIndex& index) {
    note_array();
    picks.push_back({&index, view_axis_, axis_});
    if (!is_mask(index)) {
      basic.push_back(Slice());
      ++axis_;
      ++view_axis_;
      return;
    }
    const Array& mask = index.array();
    if (mask.ndim() == 0) {  // a new axis of extent 0 or 1
      basic.push_back(newaxis);
      ++view_axis_;
    }
    for (int d = 0; d < mask.ndim(); ++d, ++axis_, ++view_axis_) {
      CATENA_CHECK(IndexError, mask.shape()[size_t(d)] == a_.shape()[size_t(axis_)],
                   "a mask of shape ", mask.shape(), " does not match axis ", axis_,
                   " of an array of shape ", a_.shape());
      basic.push_back(Slice());
    }
  }

  void note_array() {
    if (left_) separated_ = true;
    if (place_ < 0) place_ = result_axis_;
  }

  const Array& a_;
  int unused_ = 0;
  int axis_ = 0, view_axis_ = 0, result_axis_ = 0;
  int place_ = -1;          // the result axis where the arrays begin
  bool left_ = false;       // another entry followed them
  bool separated_ = false;  // and after it another array
};

// Merges axes [first, first + count) into one if the strides allow it; else returns an undefined
// array.
Array merge_axes(const Array& a, int first, int count) {
  Shape shape(a.shape().begin(), a.shape().begin() + first);
  Strides strides(a.strides().begin(), a.strides().begin() + first);
  int64_t extent = 1, stride = 0;  // of the axes merged so far, from the last one
  for (int d = first + count - 1; d >= first; --d) {
    const int64_t e = a.shape()[size_t(d)], s = a.strides()[size_t(d)];
    if (e == 1) continue;
    if (extent == 1)
      stride = s;
    else if (s != stride * extent && a.size() > 0)
      return {};
    extent *= e;
  }
  shape.push_back(extent);
  strides.push_back(stride);
  shape.insert(shape.end(), a.shape().begin() + first + count, a.shape().end());
  strides.insert(strides.end(), a.strides().begin() + first + count, a.strides().end());
  const int64_t offset = static_cast<char*>(a.raw_data()) - static_cast<char*>(a.storage()->data);
  return Array::from_storage(a.storage(), offset, shape, strides, a.dtype());
}

// Adds the positions of a mask: one list along a merged axis, or one list for each axis. Returns
// the number of axes that were removed.
int add_mask(Selection& s, const Array& mask, int axis, int array_axis) {
  const Array flat = flatnonzero(mask);
  const int count = mask.ndim();
  if (count == 0) {
    s.lists.push_back({zeros(flat.shape(), {Dtype::kInt64, mask.device()}), 1, array_axis, true});
    s.axes.push_back(axis);
    return 0;
  }
  if (const Array merged = merge_axes(s.base, axis, count); merged.defined()) {
    s.base = merged;
    s.lists.push_back({flat, mask.size(), array_axis, true});
    s.axes.push_back(axis);
    return count - 1;
  }
  const auto lists = unravel_known(flat, mask.shape());
  for (int d = 0; d < count; ++d) {
    s.lists.push_back({lists[size_t(d)], mask.shape()[size_t(d)], array_axis + d, true});
    s.axes.push_back(axis + d);
  }
  return 0;
}

void add_list(Selection& s, const AnyIndex& index, int axis, int array_axis) {
  const int64_t extent = s.base.shape()[size_t(axis)];
  Array array = index.array();
  const bool known = index.on_host();
  if (known) {  // checked here, where it costs nothing
    check_positions(array, extent, array_axis);
    array = array.to(s.base.device());
  }
  s.lists.push_back({integer_positions(s.base.device(), array), extent, array_axis, known});
  s.axes.push_back(axis);
}

}  // namespace

Shape Selection::rest() const {
  Shape rest;
  for (int d = 0; d < base.ndim(); ++d) {
    if (std::find(axes.begin(), axes.end(), d) == axes.end())
      rest.push_back(base.shape()[size_t(d)]);
  }
  return rest;
}

Shape Selection::shape() const {
  Shape shape = rest();
  shape.insert(shape.begin() + place, broadcast.begin(), broadcast.end());
  return shape;
}

Selection resolve_selection(const Array& a, std::span<const AnyIndex> indices, OutOfRange mode) {
  CATENA_CHECK(ValueError, a.defined(), "the array is undefined");
  const Walk walk(a, indices);
  Selection s;
  s.base = a.at(std::span<const Index>(walk.basic));
  s.place = walk.place();
  int merged = 0;
  for (const Pick& pick : walk.picks) {
    const Array& array = pick.index->array();
    CATENA_CHECK(DeviceError, pick.index->on_host() || array.device() == a.device(),
                 "the array is on ", a.device(), ", an index on ", array.device(),
                 "; move it with to(device)");
    if (is_mask(*pick.index))
      merged += add_mask(s, array, pick.view_axis - merged, pick.array_axis);
    else
      add_list(s, *pick.index, pick.view_axis - merged, pick.array_axis);
  }
  s.may_repeat = !(walk.picks.size() == 1 && is_mask(*walk.picks.front().index));
  bool mixed = false;
  for (PositionList& list : s.lists) {
    s.broadcast = broadcast_shapes(s.broadcast, list.array.shape());
    mixed = mixed || list.array.dtype() != s.lists.front().array.dtype();
  }
  for (PositionList& list : s.lists) {
    CATENA_CHECK(IndexError, list.extent > 0 || list.array.size() == 0, "positions along axis ",
                 list.axis, " of extent 0");
    if (mixed) list.array = list.array.astype(Dtype::kInt64, false);
  }
  if (mode == OutOfRange::kRaise) check_positions(s.lists);
  return s;
}

}  // namespace catena
