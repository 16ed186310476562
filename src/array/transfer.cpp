#include "catena/array/transfer.h"

#include "catena/core/backend.h"

namespace catena {
namespace {

void check_stream_of(const char* who, const Array& array, const Stream& stream) {
  CATENA_CHECK(ValueError, array.defined() && stream.defined(), who,
               ": expected an array and a stream, one of them is undefined");
  CATENA_CHECK(DeviceError, stream.device() == array.device(), who, ": the array is on ",
               array.device(), ", the stream belongs to ", stream.device());
}

}  // namespace

namespace detail {

void check_host_span(const char* who, const Array& array, Dtype dtype, size_t count) {
  CATENA_CHECK(ValueError, array.defined(), who, ": the array is undefined");
  CATENA_CHECK(DtypeError, array.dtype() == dtype, who, ": the array holds ", array.dtype(),
               ", the span ", dtype);
  CATENA_CHECK(ShapeError, static_cast<size_t>(array.size()) == count, who, ": the array of shape ",
               array.shape(), " has ", array.size(), " elements, the span ", count);
}

}  // namespace detail

Array empty_pinned(const Shape& shape, Dtype dtype) {
  const auto item = static_cast<int64_t>(itemsize(dtype));
  const auto bytes = static_cast<size_t>(element_count(shape) * item);
  return Array::from_storage(allocate_pinned(cpu(0), bytes), 0, shape,
                             contiguous_strides(shape, item), dtype);
}

Event copy_to_host_async(const Array& source, void* target, const Stream& stream) {
  check_stream_of("copy_to_host_async", source, stream);
  const Device device = source.device();
  if (source.size() == 0) return stream.record();
  stream.wait(current_stream(device));
  StreamScope scope(stream);
  const Array packed = source.contiguous();
  backend(device.type())
      .copy_bytes(target, cpu(0), packed.raw_data(), device, static_cast<size_t>(packed.nbytes()),
                  stream);
  record_use(*packed.storage(), stream);
  record_use(*source.storage(), stream);
  return stream.record();
}

Event set_async(const Array& target, const void* source, const Stream& stream) {
  check_stream_of("set_async", target, stream);
  check_writable("set_async", target);
  const Device device = target.device();
  if (target.size() == 0) return stream.record();
  stream.wait(current_stream(device));
  StreamScope scope(stream);
  const Array packed = target.is_contiguous()
                           ? target
                           : Array::uninitialized(target.shape(), target.dtype(), device);
  backend(device.type())
      .copy_bytes(packed.raw_data(), device, source, cpu(0), static_cast<size_t>(packed.nbytes()),
                  stream);
  if (packed.same_body(target))
    target.note_write();
  else
    target.assign(packed);
  record_use(*target.storage(), stream);
  return stream.record();
}

}  // namespace catena
