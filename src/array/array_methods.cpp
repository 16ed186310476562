// Members of Array that forward to free functions, and asynchronous host transfers.
#include "catena/array/array.h"
#include "catena/array/indexing.h"
#include "catena/array/linalg.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/array/transfer.h"
#include "catena/core/backend.h"
#include "catena/core/entry_scope.h"

namespace catena {
namespace {

// Enqueues a copy of the bytes of `source` to `target`. One of the two is on the stream's device.
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

void check_stream(const Array& a, const Stream& stream) {
  CATENA_CHECK(DeviceError, stream.device() == a.device(), "the array is on ", a.device(),
               ", the stream on ", stream.device());
}

void check_settable(const Array& a, const Array& host) {
  CATENA_CHECK(DeviceError, host.device().is_cpu(), "expected a host array, got one on ",
               host.device(), "; use assign");
  CATENA_CHECK(DtypeError, host.dtype() == a.dtype(), "the array holds ", a.dtype(),
               ", the source ", host.dtype(), "; convert it with astype");
  CATENA_CHECK(ShapeError, host.shape() == a.shape(), "the array has shape ", a.shape(),
               ", the source ", host.shape());
  CATENA_CHECK(ValueError, a.is_contiguous() || a.is_fortran_contiguous(),
               "expected an array that is contiguous in C or Fortran order, got shape ", a.shape(),
               " with strides ", a.strides(), "; use assign");
}

// A C-contiguous view of the same memory: a Fortran-contiguous array has its axes reversed.
Array in_memory_order(const Array& a) { return a.is_contiguous() ? a : a.transpose(); }

// Whether get() copies in Fortran order.
bool wants_fortran(const Array& a, char order) {
  CATENA_CHECK(ValueError, order == 'C' || order == 'F' || order == 'A', "order '",
               std::string(1, order), "' is none of 'C', 'F' and 'A'");
  return order == 'F' || (order == 'A' && a.is_fortran_contiguous() && !a.is_contiguous());
}

void check_destination(const Array& a, const Array& out) {
  check_defined(out);
  CATENA_CHECK(DeviceError, out.device().is_cpu(), "expected a host array as `out`, got one on ",
               out.device());
  CATENA_CHECK(DtypeError, out.dtype() == a.dtype(), "the array holds ", a.dtype(), ", `out` ",
               out.dtype());
  CATENA_CHECK(ShapeError, out.shape() == a.shape(), "the array has shape ", a.shape(), ", `out` ",
               out.shape());
  CATENA_CHECK(ValueError, out.is_contiguous() || out.is_fortran_contiguous(),
               "expected `out` to be contiguous in C or Fortran order, got strides ",
               out.strides());
  check_writable(out);
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

Array Array::reduced_view(Dtype other) const {
  const Array merged = reduced_view();
  // A single element merges to a 0-d view, which has no last axis for view(dtype).
  return (merged.ndim() == 0 ? merged.reshape({1}) : merged).view(other).reduced_view();
}

void Array::set_shape(const Shape& shape) & {
  const EntryScope call("set_shape");
  const Array other = reshape(shape);
  CATENA_CHECK(ShapeError, size() == 0 || other.shares_memory_with(*this), "the strides ",
               strides(), " of shape ", this->shape(), " allow no view of shape ", shape,
               "; reshape copies");
  *this = other;
}

bool Array::truth() const {
  const EntryScope call("truth");
  if (size() == 0) return false;
  CATENA_CHECK(ValueError, size() == 1, "an array of shape ", shape(),
               " has more than one truth value; use all() or any()");
  return item<bool>();
}

Array Array::get() const { return device() == cpu(0) ? copy() : contiguous().copy_to(cpu(0)); }

Array Array::get(const Stream& stream) const { return get({.stream = stream, .blocking = false}); }

Array Array::get(const GetOptions& options) const {
  const EntryScope call("Array::get");
  check_defined(*this);
  if (options.stream) check_stream(*this, *options.stream);
  const bool given = options.out.given();
  if (given) check_destination(*this, options.out);
  const bool wanted = wants_fortran(*this, options.order);
  const bool fortran = given ? !options.out.is_contiguous() : wanted;
  const Array source = (fortran ? transpose() : *this).contiguous();
  Array host;  // in the layout of `source`
  if (given)
    host = in_memory_order(options.out);
  else if (device().is_cpu() || options.blocking)
    host = uninitialized(source.shape(), dtype(), cpu(0));
  else
    host = empty_pinned(source.shape(), dtype());
  const Stream stream = options.stream.value_or(current_stream(device()));
  if (stream != current_stream(device())) stream.wait(current_stream(device()));
  enqueue_bytes(source, host, stream);
  if (options.blocking) stream.synchronize();
  if (!given) return fortran ? host.transpose() : host;
  host.note_write();
  return options.out;
}

void Array::set(const Array& host) const {
  const EntryScope call("Array::set");
  check_settable(*this, host);
  assign(host);
}

void Array::set(const Array& host, const Stream& stream) const {
  const EntryScope call("Array::set");
  check_settable(*this, host);
  check_stream(*this, stream);
  check_writable(*this);
  stream.wait(current_stream(device()));  // earlier work may still read the old elements
  const Array target = in_memory_order(*this);
  enqueue_bytes((is_contiguous() ? host : host.transpose()).contiguous(), target, stream);
  note_write();
}

Array Array::take(const Array& indices, OptionalAxis axis, const Out& out) const {
  return catena::take(*this, indices, axis, OutOfRange::kRaise, out);
}
Array Array::take(std::initializer_list<int64_t> indices, OptionalAxis axis, const Out& out) const {
  return catena::take(*this, indices, axis, OutOfRange::kRaise, out);
}
Array Array::sum(const ReduceAxes& axes, YesNo keepdims) const {
  return catena::sum(*this, axes, keepdims);
}
Array Array::sum(const ReduceOptions& options) const { return catena::sum(*this, options); }
Array Array::prod(const ReduceAxes& axes, YesNo keepdims) const {
  return catena::prod(*this, axes, keepdims);
}
Array Array::prod(const ReduceOptions& options) const { return catena::prod(*this, options); }
Array Array::mean(const ReduceAxes& axes, YesNo keepdims) const {
  return catena::mean(*this, axes, keepdims);
}
Array Array::mean(const ReduceOptions& options) const { return catena::mean(*this, options); }
Array Array::var(const ReduceAxes& axes, YesNo keepdims, int64_t ddof) const {
  return catena::var(*this, axes, keepdims, ddof);
}
Array Array::var(const ReduceOptions& options, int64_t ddof) const {
  return catena::var(*this, options, ddof);
}
Array Array::std(const ReduceAxes& axes, YesNo keepdims, int64_t ddof) const {
  return catena::std(*this, axes, keepdims, ddof);
}
Array Array::std(const ReduceOptions& options, int64_t ddof) const {
  return catena::std(*this, options, ddof);
}
Array Array::max(const ReduceAxes& axes, YesNo keepdims) const {
  return amax(*this, axes, keepdims);
}
Array Array::max(const ReduceOptions& options) const { return amax(*this, options); }
Array Array::min(const ReduceAxes& axes, YesNo keepdims) const {
  return amin(*this, axes, keepdims);
}
Array Array::min(const ReduceOptions& options) const { return amin(*this, options); }
Array Array::ptp(const ReduceAxes& axes, YesNo keepdims) const {
  return catena::ptp(*this, axes, keepdims);
}
Array Array::ptp(const ReduceOptions& options) const { return catena::ptp(*this, options); }
Array Array::all(const ReduceAxes& axes, YesNo keepdims) const {
  return catena::all(*this, axes, keepdims);
}
Array Array::all(const ReduceOptions& options) const { return catena::all(*this, options); }
Array Array::any(const ReduceAxes& axes, YesNo keepdims) const {
  return catena::any(*this, axes, keepdims);
}
Array Array::any(const ReduceOptions& options) const { return catena::any(*this, options); }
Array Array::argmax(const ReduceAxes& axes, YesNo keepdims) const {
  return catena::argmax(*this, axes, keepdims);
}
Array Array::argmax(const ReduceOptions& options) const { return catena::argmax(*this, options); }
Array Array::argmin(const ReduceAxes& axes, YesNo keepdims) const {
  return catena::argmin(*this, axes, keepdims);
}
Array Array::argmin(const ReduceOptions& options) const { return catena::argmin(*this, options); }
Array Array::clip(const Operand& low, const Operand& high, const Out& out) const {
  return catena::clip(*this, low, high, out);
}
Array Array::trace(int64_t offset, Axis axis1, Axis axis2, const Out& out) const {
  return catena::trace(*this, offset, axis1, axis2, out);
}
Array Array::dot(const Array& other, const Out& out) const {
  return catena::dot(*this, other, out);
}

}  // namespace catena
