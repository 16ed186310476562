#include "catena/core/memory_pointer.h"

#include "catena/core/backend.h"
#include "catena/core/error.h"

namespace catena {

Memory::Memory(size_t bytes, Device device) : size_(bytes) {
  if (bytes > 0) storage_ = allocate_unpooled(device, bytes);
}

std::optional<Device> Memory::device() const {
  return storage_ ? std::optional(storage_->device) : std::nullopt;
}

MemoryPointer::MemoryPointer(StoragePtr storage, size_t offset)
    : storage_(std::move(storage)), offset_(0) {
  *this += static_cast<std::ptrdiff_t>(offset);
}

void* MemoryPointer::ptr() const {
  return storage_ ? static_cast<char*>(storage_->data) + offset_ : nullptr;
}

std::optional<Device> MemoryPointer::device() const {
  return storage_ ? std::optional(storage_->device) : std::nullopt;
}

size_t MemoryPointer::available() const { return storage_ ? storage_->bytes - offset_ : 0; }

MemoryPointer& MemoryPointer::operator+=(std::ptrdiff_t bytes) {
  const size_t end = storage_ ? storage_->bytes : 0;
  const auto moved = offset_ + static_cast<size_t>(bytes);  // wraps below zero to beyond the end
  CATENA_CHECK(ValueError, moved <= end, "MemoryPointer: ", int64_t{bytes}, " bytes from offset ",
               offset_, " leave the block of ", end, " bytes");
  offset_ = moved;
  return *this;
}

void MemoryPointer::check(const char* who, size_t size) const {
  CATENA_CHECK(ValueError, size <= available(), "MemoryPointer::", who, ": ", size,
               " bytes from offset ", offset_, " leave the block, which has ", available(),
               " bytes there");
}

// On a stream of this block's device, or of the source's when this is host memory.
void MemoryPointer::enqueue_from(const void* source, Device from, size_t size,
                                 const Stream& stream) const {
  const Device here = storage_->device;
  CATENA_CHECK(DeviceError, stream.device() == here || stream.device() == from,
               "MemoryPointer: a copy from ", from, " to ", here, " cannot run on a stream of ",
               stream.device());
  const bool on_host = here.is_cpu() && from.is_cpu();
  backend(on_host ? DeviceType::kCpu : DeviceType::kCuda)
      .copy_bytes(ptr(), here, source, from, size, stream);
  record_use(*storage_, stream);
}

void MemoryPointer::copy_from(const void* source, size_t size) const {
  if (size == 0) return;
  const Device from = device_of_pointer(source);
  if (from.is_cpu()) return copy_from_host(source, size);
  check("copy_from", size);
  const Stream stream = current_stream(storage_->device.is_cpu() ? from : storage_->device);
  stream.wait(current_stream(from));
  enqueue_from(source, from, size, stream);
  if (storage_->device.is_cpu()) stream.synchronize();
  if (storage_->device != from) current_stream(from).wait(stream);
}

void MemoryPointer::copy_from_async(const void* source, size_t size, const Stream& stream) const {
  if (size == 0) return;
  check("copy_from_async", size);
  enqueue_from(source, device_of_pointer(source), size, stream);
}

void MemoryPointer::copy_from_device(const MemoryPointer& source, size_t size) const {
  if (size == 0) return;
  check("copy_from_device", size);
  source.check("copy_from_device (source)", size);
  const Device here = storage_->device, from = source.storage_->device;
  const Stream stream = current_stream(here.is_cpu() ? from : here);
  if (from.is_cuda()) stream.wait(current_stream(from));
  copy_from_device_async(source, size, stream);
  if (here.is_cpu() || from.is_cpu())
    stream.synchronize();  // host memory has no stream that could wait
  else if (from != here)
    current_stream(from).wait(stream);
}

void MemoryPointer::copy_from_device_async(const MemoryPointer& source, size_t size,
                                           const Stream& stream) const {
  if (size == 0) return;
  check("copy_from_device_async", size);
  source.check("copy_from_device_async (source)", size);
  enqueue_from(source.ptr(), source.storage_->device, size, stream);
  record_use(*source.storage_, stream);
}

void MemoryPointer::copy_from_host(const void* source, size_t size) const {
  if (size == 0) return;
  check("copy_from_host", size);
  const Stream stream = current_stream(storage_->device);
  copy_from_host_async(source, size, stream);
  stream.synchronize();
}

void MemoryPointer::copy_from_host_async(const void* source, size_t size,
                                         const Stream& stream) const {
  if (size == 0) return;
  check("copy_from_host_async", size);
  enqueue_from(source, cpu(0), size, stream);
}

void MemoryPointer::copy_to_host(void* target, size_t size) const {
  if (size == 0) return;
  check("copy_to_host", size);
  const Stream stream = current_stream(storage_->device);
  copy_to_host_async(target, size, stream);
  stream.synchronize();
}

void MemoryPointer::copy_to_host_async(void* target, size_t size, const Stream& stream) const {
  if (size == 0) return;
  check("copy_to_host_async", size);
  CATENA_CHECK(DeviceError, stream.device() == storage_->device,
               "MemoryPointer::copy_to_host_async: memory of ", storage_->device, ", a stream of ",
               stream.device());
  backend(storage_->device.type())
      .copy_bytes(target, cpu(0), ptr(), storage_->device, size, stream);
  record_use(*storage_, stream);
}

void MemoryPointer::memset(int value, size_t size) const {
  if (size == 0) return;
  check("memset", size);
  memset_async(value, size, current_stream(storage_->device));
}

void MemoryPointer::memset_async(int value, size_t size, const Stream& stream) const {
  if (size == 0) return;
  check("memset_async", size);
  CATENA_CHECK(DeviceError, stream.device() == storage_->device,
               "MemoryPointer::memset_async: memory of ", storage_->device, ", a stream of ",
               stream.device());
  backend(storage_->device.type()).fill_bytes(ptr(), value, size, stream);
  record_use(*storage_, stream);
}

MemoryPointer alloc(size_t bytes, Device device) { return MemoryPointer(allocate(device, bytes)); }

}  // namespace catena
