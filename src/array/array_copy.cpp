// Copies, casts and transfers between devices; writing to and reading from arrays.
#include <cstring>

#include "array/memory_order.h"
#include "catena/array/array.h"
#include "catena/core/backend.h"
#include "catena/core/entry_scope.h"
#include "catena/kernels/copy.h"

namespace catena {
namespace {

// Moves the bytes of a dense array into one of the same layout on another device.
void transfer(const Array& source, const Array& target) {
  const Device from = source.device(), to = target.device();
  const auto bytes = static_cast<size_t>(source.nbytes());
  if (bytes == 0) return;
  if (from.is_cpu() && to.is_cpu()) {
    std::memcpy(target.raw_data(), source.raw_data(), bytes);
    return;
  }
  const Device worker = to.is_cpu() ? from : to;
  Backend& b = backend(worker.type());
  const Stream stream = current_stream(worker);
  const bool between_gpus = !from.is_cpu() && !to.is_cpu();
  if (between_gpus) stream.wait(current_stream(from));
  b.copy_bytes(target.raw_data(), to, source.raw_data(), from, bytes, stream);
  if (between_gpus) {
    // The caller may overwrite or free the source on its own stream when this returns.
    record_use(*source.storage(), stream);
    current_stream(from).wait(stream);
  } else if (to.is_cpu() || source.storage()->pinned) {
    stream.synchronize();  // host memory has no stream that could wait
  }
}

// The operation that a copy between layouts or dtypes on one device needs. Kernels are fastest
// where the target is in C order, so both are seen in the target's order.
void copy_on_device(const Array& source, const Array& target) {
  if (target.size() == 0) return;
  if (target.is_contiguous()) return kernels::copy(target.device(), {source, target});
  const MemoryOrder order = target.order();
  kernels::copy(target.device(), {in_order(source, order), in_order(target, order)});
}

// Whether astype() without a copy may return the array itself.
bool is_laid_out(const Array& a, char letter) {
  if (letter == 'C') return a.is_contiguous();
  if (letter == 'F') return a.is_fortran_contiguous();
  if (letter == 'A') return a.is_contiguous() || a.is_fortran_contiguous();
  return true;
}

// A copy on the same device with its axes in this order.
Array copy_in(const Array& source, Dtype dtype, const MemoryOrder& order) {
  Array result = Array::uninitialized(source.shape(), dtype, source.device(), order);
  copy_on_device(source, result);
  return result;
}

}  // namespace

Array Array::copy(char order) const {
  const EntryScope call("copy");
  check_defined(*this);
  return copy_in(*this, dtype(), order_of_letter(*this, order));
}

Array Array::astype(Dtype to, bool copy_always, char order) const {
  check_defined("astype", *this);
  const EntryScope call("astype");
  const MemoryOrder wanted = order_of_letter(*this, order);
  if (to == dtype() && !copy_always && is_laid_out(*this, order)) return *this;
  return copy_in(*this, to, wanted);
}

Array Array::to(Device target) const {
  check_defined("to", *this);
  return target == device() ? *this : copy_to(target);
}

Array Array::copy_to(Device target) const {
  if (target == device()) return copy('K');
  const EntryScope call("to");
  require_device(target);
  const Array source = is_dense() ? *this : copy('K');
  Array result = uninitialized(shape(), dtype(), target, source.order());
  transfer(source, result);
  return result;
}

void Array::assign(const Array& source) const {
  const EntryScope call("assign");
  const Array& to = *this;
  check_defined(to);
  check_defined(source);
  check_writable(to);
  Array from = source;
  if (from.device() != to.device()) {
    if (from.dtype() == to.dtype() && to.is_dense() && from.shape() == to.shape()) {
      const MemoryOrder order = to.order();
      transfer(in_order(from, order).contiguous(), in_order(to, order));
      to.note_write();
      return;
    }
    from = from.to(to.device());
  }
  if (from.same_body(to)) return;
  if (from.shares_memory_with(to)) from = from.copy();
  if (from.shape() != to.shape()) {
    // NumPy drops leading extents of 1 in an assignment.
    while (from.ndim() > to.ndim() && from.shape()[0] == 1) from = from[0];
    CATENA_CHECK(ShapeError, broadcast_shapes(from.shape(), to.shape()) == to.shape(),
                 "source of shape ", source.shape(), " does not broadcast to ", to.shape());
    from = from.broadcast_to(to.shape());
  }
  copy_on_device(from, to);
  to.note_write();
}

void Array::fill(const Scalar& value) const {
  const EntryScope call("fill");
  const Array& a = *this;
  check_defined(a);
  if (a.size() == 0) return;
  check_writable(a);
  check_fits(value, a.dtype());
  kernels::fill(a.device(), {in_order(a, a.order()), value});
  a.note_write();
}

void Array::assign(const Scalar& value) const {
  const EntryScope call("assign");
  fill(value);
}

Scalar Array::item() const {
  const EntryScope call("item");
  check_defined(*this);
  CATENA_CHECK(ShapeError, size() == 1, "expected an array of one element, got shape ", shape());
  const Array host = to_cpu();
  return visit_dtype(dtype(), [&]<class T>(TypeTag<T>) -> Scalar {
    return Scalar(*static_cast<const T*>(host.raw_data()));
  });
}

}  // namespace catena
