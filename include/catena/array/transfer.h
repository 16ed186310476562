// Copies between arrays and host memory on a stream of the caller's choice.
#pragma once

#include <span>

#include "catena/array/array.h"

namespace catena {

// Elements in page-locked host memory, which copies on a stream need to run beside the host's work.
// DeviceError without a GPU.
Array empty_pinned(const Shape& shape, Dtype dtype);

// Enqueues a copy of the elements (C order) to host memory on `stream`, a stream of the array's
// device that first waits for the device's current one. The bytes are there when the event is done;
// the array may be freed before, and written once its own stream waits for the event. With memory
// that is not pinned the call returns when the copy is done. DeviceError for a stream of another
// device, DtypeError and ShapeError when the span has another type or size.
Event copy_to_host_async(const Array& source, void* target, const Stream& stream);
template <class T>
Event copy_to_host_async(const Array& source, std::span<T> target, const Stream& stream);

// Enqueues a copy of host memory (C order) into the array, likewise. The host memory must stay
// unchanged until the event is done, unless it is not pinned: then it may change at once. Other
// streams that read the array wait for the event first.
Event set_async(const Array& target, const void* source, const Stream& stream);
template <class T>
Event set_async(const Array& target, std::span<T> source, const Stream& stream);

// Implementation ---------------------------------------------------------------------------------

namespace detail {

void check_host_span(const char* who, const Array& array, Dtype dtype, size_t count);

}  // namespace detail

template <class T>
Event copy_to_host_async(const Array& source, std::span<T> target, const Stream& stream) {
  detail::check_host_span("copy_to_host_async", source, dtype_of<T>, target.size());
  return copy_to_host_async(source, static_cast<void*>(target.data()), stream);
}

template <class T>
Event set_async(const Array& target, std::span<T> source, const Stream& stream) {
  detail::check_host_span("set_async", target, dtype_of<std::remove_const_t<T>>, source.size());
  return set_async(target, static_cast<const void*>(source.data()), stream);
}

}  // namespace catena
