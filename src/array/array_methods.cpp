// Members of Array that are other names of free functions, and asynchronous host transfers.
#include "catena/array/array.h"
#include "catena/array/indexing.h"
#include "catena/array/linalg.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/core/backend.h"

namespace catena {
namespace {

// Enqueues the bytes of `source` into `target`, one of which is on the stream's device.
void enqueue_bytes(const Array& source, const Array& target, const Stream& stream) {
  if (source.size() == 0) return;
  const Device gpu = stream.device();
  if (gpu.is_cpu()) {
    target.assign(source);
    return;
  }
  backend(gpu.type())
      .copy_bytes(target.raw_data(), target.device(), source.raw_data(), source.device(),
                  static_cast<size_t>(source.nbytes()), stream);
  record_use(*source.storage(), stream);
  record_use(*target.storage(), stream);
}

void check_stream(const char* who, const Array& a, const Stream& stream) {
  CATENA_CHECK(DeviceError, stream.device() == a.device(), who, ": the array is on ", a.device(),
               ", the stream on ", stream.device());
}

void check_settable(const Array& a, const Array& host) {
  CATENA_CHECK(DeviceError, host.device().is_cpu(),
               "Array::set: expected a host array, got one on ", host.device(), "; use assign");
  CATENA_CHECK(DtypeError, host.dtype() == a.dtype(), "Array::set: the array holds ", a.dtype(),
               ", the source ", host.dtype(), "; convert it with astype");
  CATENA_CHECK(ShapeError, host.shape() == a.shape(), "Array::set: the array has shape ", a.shape(),
               ", the source ", host.shape());
  CATENA_CHECK(ValueError, a.is_contiguous(), "Array::set: expected a contiguous array, got shape ",
               a.shape(), " with strides ", a.strides(), "; use assign");
}

}  // namespace

Array Array::base() const {
  if (!known().is_view) return {};
  const int64_t count = static_cast<int64_t>(storage()->bytes) / itemsize();
  return from_storage(storage(), 0, {count}, {itemsize()}, dtype());
}

Array Array::reduced_view() const {
  Shape kept;
  Strides steps;
  for (int d = 0; d < ndim(); ++d) {
    const int64_t extent = shape()[size_t(d)], step = strides()[size_t(d)];
    if (extent == 1) continue;
    if (!kept.empty() && steps.back() == step * extent) {
      kept.back() *= extent;
      steps.back() = step;
    } else {
      kept.push_back(extent);
      steps.push_back(step);
    }
  }
  const int64_t offset = static_cast<char*>(raw_data()) - static_cast<char*>(storage()->data);
  Array result = from_storage(storage(), offset, kept, steps, dtype());
  result.body()->repeats = body_->repeats;
  return result;
}

Array Array::get() const { return copy_to(cpu(0)); }

Array Array::get(const Stream& stream) const {
  check_stream("Array::get", *this, stream);
  if (device().is_cpu()) return copy_to(cpu(0));
  const Array source = contiguous();
  const auto bytes = static_cast<size_t>(source.nbytes());
  const Array host = from_storage(allocate_pinned(cpu(0), bytes), 0, shape(),
                                  contiguous_strides(shape(), itemsize()), dtype());
  stream.wait(current_stream(device()));
  enqueue_bytes(source, host, stream);
  return host;
}

void Array::set(const Array& host) const {
  check_settable(*this, host);
  assign(host);
}

void Array::set(const Array& host, const Stream& stream) const {
  check_settable(*this, host);
  check_stream("Array::set", *this, stream);
  check_writable("Array::set", *this);
  stream.wait(current_stream(device()));  // what still reads the old elements
  enqueue_bytes(host.contiguous(), *this, stream);
  note_write();
}

Array Array::take(const Array& indices, std::optional<int64_t> axis, const Array* out) const {
  return catena::take(*this, indices, axis, OutOfRange::kRaise, out);
}
Array Array::take(std::initializer_list<int64_t> indices, std::optional<int64_t> axis,
                  const Array* out) const {
  return catena::take(*this, indices, axis, OutOfRange::kRaise, out);
}
Array Array::sum(const ReduceOptions& options) const { return catena::sum(*this, options); }
Array Array::prod(const ReduceOptions& options) const { return catena::prod(*this, options); }
Array Array::mean(const ReduceOptions& options) const { return catena::mean(*this, options); }
Array Array::var(const ReduceOptions& options, int64_t ddof) const {
  return catena::var(*this, options, ddof);
}
Array Array::std(const ReduceOptions& options, int64_t ddof) const {
  return catena::std(*this, options, ddof);
}
Array Array::max(const ReduceOptions& options) const { return amax(*this, options); }
Array Array::min(const ReduceOptions& options) const { return amin(*this, options); }
Array Array::ptp(const ReduceOptions& options) const { return catena::ptp(*this, options); }
Array Array::all(const ReduceOptions& options) const { return catena::all(*this, options); }
Array Array::any(const ReduceOptions& options) const { return catena::any(*this, options); }
Array Array::argmax(std::optional<int64_t> axis, YesNo keepdims, const Array* out) const {
  return catena::argmax(*this, axis, keepdims, out);
}
Array Array::argmin(std::optional<int64_t> axis, YesNo keepdims, const Array* out) const {
  return catena::argmin(*this, axis, keepdims, out);
}
Array Array::clip(const Operand& low, const Operand& high) const { return clip(low, high, {}); }
Array Array::clip(const Operand& low, const Operand& high, const Out& out) const {
  return catena::clip(*this, low, high, out);
}
Array Array::trace(int64_t offset, int64_t axis1, int64_t axis2) const {
  return trace(offset, axis1, axis2, {});
}
Array Array::trace(int64_t offset, int64_t axis1, int64_t axis2, const Out& out) const {
  return catena::trace(*this, offset, axis1, axis2, out);
}
Array Array::dot(const Array& other) const { return dot(other, {}); }
Array Array::dot(const Array& other, const Out& out) const {
  return catena::dot(*this, other, out);
}

}  // namespace catena
