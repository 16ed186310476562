// Raw memory with an owner, and addresses in it, in the words of CuPy's memory module.
#pragma once

#include <optional>

#include "catena/core/memory.h"

namespace catena {

// A block straight from the device's allocator, past the pools; zero bytes allocate nothing.
class Memory {
 public:
  explicit Memory(size_t bytes, Device device = current_device());
  // Nothing for an empty block.
  std::optional<Device> device() const;
  void* ptr() const { return storage_ ? storage_->data : nullptr; }
  size_t size() const { return size_; }
  const StoragePtr& storage() const { return storage_; }

 private:
  StoragePtr storage_;
  size_t size_;
};

// An address in a block, which it keeps. Copies and fills of `size` bytes begin at the address; one
// that leaves the block is a ValueError, one of zero bytes does nothing. Those that end in _async
// only enqueue on the given stream, and host memory must stay (and should be pinned: else the copy
// is not asynchronous) until that is done; the others work on the current stream, and those that
// touch host memory return when the copy is done.
class MemoryPointer {
 public:
  MemoryPointer() = default;  // of nothing
  explicit MemoryPointer(const Memory& memory, size_t offset = 0)
      : MemoryPointer(memory.storage(), offset) {}
  explicit MemoryPointer(StoragePtr storage, size_t offset = 0);

  // The address, its device and its block; null and empty for a pointer to nothing.
  void* ptr() const;
  std::optional<Device> device() const;
  const StoragePtr& storage() const { return storage_; }
  // Bytes from the address to the end of the block.
  size_t available() const;
  // Moves by bytes; ValueError outside the block.
  MemoryPointer& operator+=(std::ptrdiff_t bytes);
  MemoryPointer& operator-=(std::ptrdiff_t bytes) { return *this += -bytes; }
  friend MemoryPointer operator+(MemoryPointer p, std::ptrdiff_t bytes) { return p += bytes; }
  friend MemoryPointer operator+(std::ptrdiff_t bytes, MemoryPointer p) { return p += bytes; }
  friend MemoryPointer operator-(MemoryPointer p, std::ptrdiff_t bytes) { return p -= bytes; }

  // From host memory or from that of a GPU, whichever the address belongs to.
  void copy_from(const void* source, size_t size) const;
  void copy_from(const MemoryPointer& source, size_t size) const { copy_from_device(source, size); }
  void copy_from_async(const void* source, size_t size, const Stream& stream) const;
  // From a block of any device.
  void copy_from_device(const MemoryPointer& source, size_t size) const;
  void copy_from_device_async(const MemoryPointer& source, size_t size, const Stream& stream) const;
  void copy_from_host(const void* source, size_t size) const;
  void copy_from_host_async(const void* source, size_t size, const Stream& stream) const;
  void copy_to_host(void* target, size_t size) const;
  void copy_to_host_async(void* target, size_t size, const Stream& stream) const;
  // Sets bytes to the low byte of the value.
  void memset(int value, size_t size) const;
  void memset_async(int value, size_t size, const Stream& stream) const;

 private:
  void check(const char* who, size_t size) const;
  void enqueue_from(const void* source, Device from, size_t size, const Stream& stream) const;

  StoragePtr storage_;
  size_t offset_ = 0;
};

// From the current allocator, by default on the current device.
MemoryPointer alloc(size_t bytes, Device device = current_device());

}  // namespace catena
