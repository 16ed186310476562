#include "catena/array/array.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "catena/core/entry_scope.h"
#include "core/error_name.h"

namespace catena {
namespace {

constexpr size_t kBodiesKept = 256;  // per thread

// Array bodies are made and destroyed with every operation, so each thread keeps some for reuse.
struct BodyCache {
  std::vector<ArrayBody*> free;
  ~BodyCache();
};
thread_local bool t_bodies_gone = false;
thread_local BodyCache t_bodies;

BodyCache::~BodyCache() {
  t_bodies_gone = true;
  for (ArrayBody* body : free) delete body;
}

bool is_c_contiguous(const Shape& shape, const Strides& strides, int64_t itemsize) {
  int64_t expected = itemsize;
  for (int i = shape.ndim() - 1; i >= 0; --i) {
    if (shape[i] == 1) continue;
    if (shape[i] == 0) return true;
    if (strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

// A view of `base` with another offset, shape and strides.
Array make_view(const Array& base, int64_t offset, Shape shape, Strides strides, Dtype dtype) {
  const int64_t size = element_count(shape);  // may throw; a raw body must not hold storage then
  ArrayBody* body = ArrayBody::create();
  body->dtype = dtype;
  body->device = base.device();
  body->storage = base.storage();
  body->repeats = base.body()->repeats;
  body->data = static_cast<char*>(base.raw_data()) + offset;
  body->size = size;
  body->contiguous = is_c_contiguous(shape, strides, static_cast<int64_t>(itemsize(dtype)));
  body->shape = std::move(shape);
  body->strides = std::move(strides);
  return Array(body);
}

// Elements on GPUs must be at multiples of their size; vector loops of CPUs expect it too.
void check_aligned(const void* data, const Shape& shape, const Strides& strides, Dtype dtype) {
  if (element_count(shape) == 0) return;
  auto bits = reinterpret_cast<uintptr_t>(data);
  for (int d = 0; d < shape.ndim(); ++d)
    if (shape[size_t(d)] > 1) bits |= static_cast<uintptr_t>(strides[size_t(d)]);
  CATENA_CHECK(ValueError, bits % itemsize(dtype) == 0, "elements of ", dtype,
               " must lie at multiples of ", itemsize(dtype),
               " bytes; the bytes of this array do not. Make a copy() first");
}

// Replaces the one -1 of a new shape.
Shape infer_shape(const Shape& wanted, int64_t size) {
  Shape shape = wanted;
  int64_t known = 1;
  bool overflow = false;
  int unknown = -1;
  for (int i = 0; i < shape.ndim(); ++i) {
    if (shape[i] == -1) {
      CATENA_CHECK(ShapeError, unknown < 0, "only one axis can be -1, got ", wanted);
      unknown = i;
    } else {
      CATENA_CHECK(ShapeError, shape[i] >= 0, "negative extent in ", wanted);
      overflow |= __builtin_mul_overflow(known, shape[i], &known);
    }
  }
  CATENA_CHECK(ShapeError, !overflow || std::find(shape.begin(), shape.end(), 0) != shape.end(),
               size, " elements do not fit ", wanted);
  if (unknown >= 0) {
    CATENA_CHECK(ShapeError, known > 0 && size % known == 0, size, " elements do not fit ", wanted,
                 ", expected a multiple of ", known);
    shape[unknown] = size / known;
  } else {
    CATENA_CHECK(ShapeError, known == size, size, " elements do not fit ", wanted, ", expected ",
                 known);
  }
  return shape;
}

// Strides of a reshaped view; returns false if the layout needs a copy. Groups of old axes that are
// one run in memory are matched with groups of new axes of the same size.
bool view_strides(const Shape& old_shape, const Strides& old_strides, const Shape& shape,
                  Strides& strides) {
  Shape os;
  Strides ot;
  for (int i = 0; i < old_shape.ndim(); ++i) {
    if (old_shape[i] != 1) {
      os.push_back(old_shape[i]);
      ot.push_back(old_strides[i]);
    }
  }
  strides.resize(shape.size());
  size_t i = 0, j = 0;
  while (i < os.size() && j < shape.size()) {
    size_t i_end = i + 1, j_end = j + 1;
    int64_t o = os[i], n = shape[j];
    while (o != n) {
      if (n < o) {
        if (j_end == shape.size()) return false;
        n *= shape[j_end++];
      } else {
        if (i_end == os.size()) return false;
        o *= os[i_end++];
      }
    }
    for (size_t k = i; k + 1 < i_end; ++k) {
      if (ot[k] != os[k + 1] * ot[k + 1]) return false;
    }
    strides[j_end - 1] = ot[i_end - 1];
    for (size_t k = j_end - 1; k > j; --k) strides[k - 1] = strides[k] * shape[k];
    i = i_end;
    j = j_end;
  }
  for (; j < shape.size(); ++j) strides[j] = j > 0 ? strides[j - 1] : 0;  // trailing extents of 1
  return i == os.size();
}

}  // namespace

ArrayBody* ArrayBody::create() {
  if (t_bodies_gone || t_bodies.free.empty()) return new ArrayBody;
  ArrayBody* body = t_bodies.free.back();
  t_bodies.free.pop_back();
  return body;
}

void ArrayBody::destroy(ArrayBody* body) {
  body->storage.reset();
  if (t_bodies_gone || t_bodies.free.size() >= kBodiesKept) {
    delete body;
    return;
  }
  body->~ArrayBody();
  t_bodies.free.push_back(new (body) ArrayBody);
}

Array Array::uninitialized(const Shape& shape, Dtype dtype, Device device) {
  CATENA_CHECK(ShapeError, shape.ndim() <= kMaxDims, "array of ", shape.ndim(),
               " dimensions; at most ", kMaxDims, " are supported");
  ArrayBody* body = ArrayBody::create();
  Array result(body);
  body->dtype = dtype;
  body->device = device;
  body->contiguous = true;
  body->is_view = false;
  body->size = element_count(shape);
  const auto item = static_cast<int64_t>(catena::itemsize(dtype));
  int64_t bytes = 0;
  CATENA_CHECK(OutOfMemoryError, !__builtin_mul_overflow(body->size, item, &bytes),
               "array of shape ", shape, " and dtype ", dtype, " has more than 2^63 bytes");
  body->storage = allocate(device, static_cast<size_t>(bytes));
  body->data = static_cast<char*>(body->storage->data);
  body->shape = shape;
  body->strides = contiguous_strides(shape, item);
  return result;
}

Array Array::uninitialized(const Shape& shape, Dtype dtype, Device device,
                           const MemoryOrder& order) {
  Array result = uninitialized(shape, dtype, device);
  if (order.is_c()) return result;
  ArrayBody& body = *result.body_;
  body.strides = order.strides(shape, result.itemsize());
  body.contiguous = is_c_contiguous(shape, body.strides, result.itemsize());
  return result;
}

Array Array::from_storage(StoragePtr storage, int64_t offset, const Shape& shape,
                          const Strides& strides, Dtype dtype) {
  const EntryScope call("Array::from_storage");
  CATENA_CHECK(ShapeError, shape.size() == strides.size(), shape.size(), " extents but ",
               strides.size(), " strides");
  int64_t low = offset, high = offset + static_cast<int64_t>(catena::itemsize(dtype));
  const int64_t size = element_count(shape);
  for (int i = 0; i < shape.ndim() && size > 0; ++i) {
    (strides[i] < 0 ? low : high) += (shape[i] - 1) * strides[i];
  }
  CATENA_CHECK(IndexError, size == 0 || (low >= 0 && high <= static_cast<int64_t>(storage->bytes)),
               "shape ", shape, " with strides ", strides, " at offset ", offset,
               " leaves a storage of ", storage->bytes, " bytes");
  ArrayBody* body = ArrayBody::create();
  body->dtype = dtype;
  body->device = storage->device;
  body->data = static_cast<char*>(storage->data) + offset;
  body->size = size;
  body->contiguous = is_c_contiguous(shape, strides, static_cast<int64_t>(catena::itemsize(dtype)));
  body->shape = shape;
  body->strides = strides;
  body->storage = std::move(storage);
  return Array(body);
}

void Array::fail_undefined() { catena::fail_undefined("Array"); }

void fail_undefined(const char* who) {
  const ErrorName name(who);
  fail<ValueError>(
      "an undefined array (default-constructed or moved from) has no shape, dtype or "
      "elements; assign an array to it first");
}

void fail_not_writable(const char* who, const Array& a) {
  const ErrorName name(who);
  if (a.storage()->read_only) fail_read_only();
  fail<ValueError>(
      "the array of shape ", a.shape(),
      " is a read-only view made by broadcast_to or broadcast_arrays, in which several "
      "elements are one in memory; write into a copy()");
}

void Array::check_span(bool reading) const {
  const EntryScope call("Array::span");
  CATENA_CHECK(DeviceError, device().is_cpu(), "the array of shape ", shape(), " is on ", device(),
               "; copy it with to_cpu() first");
  CATENA_CHECK(ShapeError, is_contiguous(), "expected a contiguous array, got shape ", shape(),
               " with strides ", strides(), "; use contiguous() or a HostView");
  if (!reading) check_writable(*this);
}

int64_t Array::length() const {
  const EntryScope call("length");
  CATENA_CHECK(ShapeError, ndim() > 0, "a 0-d array has no length");
  return shape()[0];
}

bool Array::is_fortran_contiguous() const {
  int64_t expected = itemsize();
  for (int i = 0; i < ndim(); ++i) {
    if (shape()[i] == 1) continue;
    if (shape()[i] == 0) return true;
    if (strides()[i] != expected) return false;
    expected *= shape()[i];
  }
  return true;
}

bool Array::shares_memory_with(const Array& other) const {
  if (size() == 0 || other.size() == 0) return false;
  // Blocks of the pools are distinct, but borrowed memory may be inside any of them.
  const bool distinct = storage()->deleter && other.storage()->deleter;
  if (distinct && storage() != other.storage()) return false;
  auto range = [](const Array& a) {
    const char *low = static_cast<char*>(a.raw_data()), *high = low + a.itemsize();
    for (int i = 0; i < a.ndim(); ++i)
      (a.strides()[i] < 0 ? low : high) += (a.shape()[i] - 1) * a.strides()[i];
    return std::pair(low, high);
  };
  const auto [a_low, a_high] = range(*this);
  const auto [b_low, b_high] = range(other);
  return a_low < b_high &&
         b_low < a_high;  // ranges that share bytes may still interleave: treated as shared
}

Array Array::reshape(const Shape& wanted) const {
  const EntryScope call("reshape");
  Shape shape = infer_shape(wanted, size());
  Strides new_strides;
  if (is_contiguous() || size() == 0) {
    new_strides = contiguous_strides(shape, itemsize());
  } else if (!view_strides(this->shape(), strides(), shape, new_strides)) {
    return copy().reshape(shape);
  }
  return make_view(*this, 0, std::move(shape), std::move(new_strides), dtype());
}

Array Array::flatten() const { return copy().reshape({-1}); }

Array Array::transpose(const Axes& axes) const {
  const EntryScope call("transpose");
  Shape shape;
  Strides new_strides;
  if (axes.empty()) {
    shape = Shape(this->shape().rbegin(), this->shape().rend());
    new_strides = Strides(strides().rbegin(), strides().rend());
  } else {
    CATENA_CHECK(ShapeError, axes.ndim() == ndim(), axes, " does not list the axes of ",
                 this->shape());
    normalize_axes(axes, ndim());  // refuses duplicates
    for (int64_t axis : axes) {
      const int a = normalize_axis(axis, ndim());
      shape.push_back(this->shape()[a]);
      new_strides.push_back(strides()[a]);
    }
  }
  return make_view(*this, 0, std::move(shape), std::move(new_strides), dtype());
}

Array Array::swapaxes(Axis axis1, Axis axis2) const {
  const EntryScope call("swapaxes");
  Shape shape = this->shape();
  Strides new_strides = strides();
  const int a = normalize_axis(axis1, ndim()), b = normalize_axis(axis2, ndim());
  std::swap(shape[a], shape[b]);
  std::swap(new_strides[a], new_strides[b]);
  return make_view(*this, 0, std::move(shape), std::move(new_strides), dtype());
}

Array Array::squeeze(const AxisList& axes) const {
  const EntryScope call("squeeze");
  uint32_t drop = 0;
  if (axes.empty()) {
    for (int i = 0; i < ndim(); ++i) drop |= uint32_t{shape()[i] == 1} << i;
  } else {
    for (int64_t axis : normalize_axes(axes, ndim())) {
      CATENA_CHECK(ShapeError, shape()[axis] == 1, "axis ", axis, " of ", shape(), " has extent ",
                   shape()[axis], ", expected 1");
      drop |= 1u << axis;
    }
  }
  Shape kept;
  Strides kept_strides;
  for (int i = 0; i < ndim(); ++i) {
    if (drop >> i & 1) continue;
    kept.push_back(shape()[i]);
    kept_strides.push_back(strides()[i]);
  }
  return make_view(*this, 0, std::move(kept), std::move(kept_strides), dtype());
}

Array Array::expand_dims(Axis axis) const {
  const EntryScope call("expand_dims");
  const int a = normalize_axis(axis, ndim() + 1);
  Shape shape = this->shape();
  Strides new_strides = strides();
  shape.insert(shape.begin() + a, 1);
  new_strides.insert(new_strides.begin() + a, 0);
  return make_view(*this, 0, std::move(shape), std::move(new_strides), dtype());
}

Array Array::broadcast_to(const Shape& shape) const {
  const EntryScope call("broadcast_to");
  if (shape == this->shape()) return *this;
  const int lead = shape.ndim() - ndim();
  CATENA_CHECK(ShapeError, lead >= 0, this->shape(), " has more axes than ", shape);
  Strides new_strides(shape.size(), 0);
  for (int i = 0; i < ndim(); ++i) {
    const int64_t from = this->shape()[i], to = shape[lead + i];
    CATENA_CHECK(ShapeError, from == to || from == 1, this->shape(), " does not broadcast to ",
                 shape, ": axis ", lead + i, " has extent ", from, ", expected ",
                 to == 1 ? std::string("1") : message(to, " or 1"));
    new_strides[lead + i] = from == to ? strides()[i] : 0;
  }
  Array result = make_view(*this, 0, shape, std::move(new_strides), dtype());
  if (result.size() > size()) result.body()->repeats = true;
  return result;
}

Array Array::diagonal(int64_t offset, Axis axis1, Axis axis2) const {
  const EntryScope call("diagonal");
  CATENA_CHECK(ShapeError, ndim() >= 2, "expected at least 2 axes, got ", shape());
  const int a = normalize_axis(axis1, ndim()), b = normalize_axis(axis2, ndim());
  CATENA_CHECK(ValueError, a != b, "both axes are ", a);
  offset = std::max(offset, -std::numeric_limits<int64_t>::max());
  const int64_t skip_a = offset < 0 ? -offset : 0, skip_b = offset > 0 ? offset : 0;
  const int64_t length = std::max<int64_t>(0, std::min(shape()[a] - skip_a, shape()[b] - skip_b));
  Shape kept;
  Strides kept_strides;
  for (int i = 0; i < ndim(); ++i) {
    if (i == a || i == b) continue;
    kept.push_back(shape()[i]);
    kept_strides.push_back(strides()[i]);
  }
  kept.push_back(length);
  kept_strides.push_back(strides()[a] + strides()[b]);
  const int64_t start = length > 0 ? skip_a * strides()[a] + skip_b * strides()[b] : 0;
  return make_view(*this, start, std::move(kept), std::move(kept_strides), dtype());
}

Array Array::view(Dtype to) const {
  const EntryScope call("view");
  const auto item = static_cast<int64_t>(catena::itemsize(to));
  Shape shape = this->shape();
  Strides new_strides = strides();
  if (item != itemsize()) {
    const bool contiguous_end =
        ndim() > 0 && (size() == 0 || shape.back() == 1 || strides().back() == itemsize());
    CATENA_CHECK(ShapeError, contiguous_end,
                 "another item size needs a contiguous last axis, got shape ", shape,
                 " and strides ", strides());
    const int64_t bytes = shape.back() * itemsize();
    CATENA_CHECK(ShapeError, bytes % item == 0, bytes,
                 " bytes of the last axis do not divide into ", to);
    shape.back() = bytes / item;
    new_strides.back() = item;
  }
  check_aligned(raw_data(), shape, new_strides, to);
  return make_view(*this, 0, std::move(shape), std::move(new_strides), to);
}

namespace {

// The number of axes that an index entry consumes.
bool consumes_axis(const Index& index) {
  return std::holds_alternative<int64_t>(index) || std::holds_alternative<Slice>(index);
}

// Python's slice rules: gives the first element and the number of elements.
std::pair<int64_t, int64_t> resolve_slice(const Slice& s, int64_t extent) {
  CATENA_CHECK(ValueError, s.step != 0, "slice step must not be zero");
  const bool down = s.step < 0;
  auto clamp = [&](int64_t value) {
    if (value < 0) value += extent;
    return std::clamp<int64_t>(value, down ? -1 : 0, down ? extent - 1 : extent);
  };
  const int64_t start = s.start ? clamp(*s.start) : down ? extent - 1 : 0;
  const int64_t stop = s.stop ? clamp(*s.stop) : down ? -1 : extent;
  const int64_t span = down ? start - stop : stop - start;
  const uint64_t step = down ? -static_cast<uint64_t>(s.step) : static_cast<uint64_t>(s.step);
  return {start, span > 0 ? static_cast<int64_t>((static_cast<uint64_t>(span) - 1) / step) + 1 : 0};
}

}  // namespace

Array Array::at(std::span<const Index> indices) const {
  const EntryScope call("index");
  const auto used = std::count_if(indices.begin(), indices.end(), consumes_axis);
  CATENA_CHECK(IndexError, used <= ndim(), used, " indices for an array of shape ", shape());
  int64_t offset = 0;
  int axis = 0;
  bool seen_ellipsis = false;
  Shape new_shape;
  Strides new_strides;
  auto keep = [&](int64_t extent, int64_t stride) {
    new_shape.push_back(extent);
    new_strides.push_back(stride);
  };
  for (const Index& index : indices) {
    if (const auto* position = std::get_if<int64_t>(&index)) {
      const int64_t extent = shape()[axis];
      CATENA_CHECK(IndexError, *position >= -extent && *position < extent, *position,
                   " is out of bounds for axis ", axis, " of shape ", shape());
      offset += (*position < 0 ? *position + extent : *position) * strides()[axis];
      ++axis;
    } else if (const auto* slice = std::get_if<Slice>(&index)) {
      const auto [start, count] = resolve_slice(*slice, shape()[axis]);
      if (count > 0) offset += start * strides()[axis];
      keep(count, count > 1 ? slice->step * strides()[axis] : strides()[axis]);
      ++axis;
    } else if (std::holds_alternative<NewAxis>(index)) {
      keep(1, 0);
    } else {
      CATENA_CHECK(IndexError, !seen_ellipsis, "only one ellipsis is allowed");
      seen_ellipsis = true;
      for (const int end = axis + ndim() - static_cast<int>(used); axis < end; ++axis)
        keep(shape()[axis], strides()[axis]);
    }
  }
  for (; axis < ndim(); ++axis) keep(shape()[axis], strides()[axis]);
  CATENA_CHECK(ShapeError, new_shape.ndim() <= kMaxDims, "the result has more than ", kMaxDims,
               " axes");
  return make_view(*this, offset, std::move(new_shape), std::move(new_strides), dtype());
}

void check_same_device(const char* who, const Array& a, const Array& b) {
  if (a.device() == b.device()) [[likely]]
    return;
  const ErrorName name(who);
  fail<DeviceError>("arrays on different devices: ", a.device(), " and ", b.device(),
                    "; copy one with to(\"", a.device(),
                    "\") first, a Variable with functions::copy(x, \"", a.device(), "\")");
}

}  // namespace catena
