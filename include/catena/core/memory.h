// Storage: one block of device memory shared by the arrays that view it, and the pools behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "catena/core/device.h"
#include "catena/core/intrusive.h"
#include "catena/core/stream.h"

namespace catena {

// A reference-counted block of bytes on one device.
//
// The block returns to the pool of its device when the last reference is dropped, and is reused in
// the order of the stream that was current when it was allocated. Every other stream that uses it
// must be recorded with record_use (copies, collectives and asynchronous transfers do so
// themselves).
struct Storage : RefCounted {
  Device device;
  bool pinned = false;     // host memory that a GPU can reach
  bool read_only = false;  // foreign memory that must not be written (check_writable)
  void* data = nullptr;
  size_t bytes = 0;                     // usable size, at least what was asked
  std::atomic<uint64_t> version{0};     // counts in-place writes; autograd compares it
  void* block = nullptr;                // the pool's own handle
  void (*deleter)(Storage*) = nullptr;  // returns the block; null for borrowed memory
  std::shared_ptr<void> owner;          // keeps foreign memory alive
  std::shared_ptr<void> observer;       // released at the end, which informs it (memory_profile.h)

  // Returns the block through the deleter. Called when the last reference is dropped.
  static void destroy(Storage* storage);
};
using StoragePtr = IntrusivePtr<Storage>;  // the last one gives the memory back

// Allocates from the device's pool, or by the allocator that the thread or the process has set.
// Zero bytes is allowed. Throws OutOfMemoryError with sizes asked, in use, cached and free.
StoragePtr allocate(Device device, size_t bytes);
// From the device's own allocator (cudaMalloc, aligned_alloc), past the pool and its limit; given
// back, after waiting for the device, when the last reference is dropped. Not during a graph
// capture.
StoragePtr allocate_unpooled(Device device, size_t bytes);
// Page-locked host memory on a CPU device, from its own pool; needs the cuda plug-in and a GPU.
StoragePtr allocate_pinned(Device cpu_device, size_t bytes);
// Wraps memory that someone else owns; `owner` (may be empty) is kept until the last array is
// destroyed.
StoragePtr borrow(Device device, void* data, size_t bytes, std::shared_ptr<void> owner = {});
// The same for memory that must not be written.
StoragePtr borrow_read_only(Device device, const void* data, size_t bytes,
                            std::shared_ptr<void> owner = {});
// The ValueError for writes into read-only storage; see check_writable of arrays.
[[noreturn]] void fail_read_only();
// Marks the storage as used by a stream other than the one it was allocated on.
void record_use(const Storage& storage, const Stream& stream);

// What a memory pool holds now, and has done so far.
struct PoolStatistics {
  size_t in_use = 0;                // bytes held by live storages
  size_t cached = 0;                // bytes kept for reuse
  size_t peak_in_use = 0;           // since the last reset_peak_memory
  size_t limit = 0;                 // 0: none
  size_t free_blocks = 0;           // pieces that `cached` consists of
  uint64_t allocations = 0;         // requests served
  uint64_t device_allocations = 0;  // requests that went to the device's own allocator
};
// The pool of a device, and the pool of page-locked host memory.
PoolStatistics memory_statistics(Device device);
PoolStatistics pinned_memory_statistics();
// peak_in_use begins again at what is in use now: to see what a part of a program needs.
void reset_peak_memory(Device device);
// Gives every cached block back to the device's own allocator.
void free_all_blocks(Device device);
void free_all_pinned_blocks();
// Refuses to let the pool of the device hold more than this many bytes; 0 removes the limit. Pools
// of GPUs start with CATENA_GPU_MEMORY_LIMIT (or CUPY_GPU_MEMORY_LIMIT): bytes or "60%".
void set_memory_limit(Device device, size_t bytes);
// The bytes that such a text means on a device of that many. ValueError for anything but a whole
// number, or a percentage from 0 to 100.
size_t parse_memory_limit(std::string_view text, size_t total_bytes);

// Where arrays get their memory. Called with the device and the number of bytes; returns at least
// as many. Inside the call, allocate() is the pool of the device.
using Allocator = std::function<StoragePtr(Device, size_t)>;
// Replaces allocate() for all threads; an empty function restores the pools. To do without
// pooling: set_allocator(&allocate_unpooled). Not while other threads allocate.
void set_allocator(Allocator allocator);

// Replaces allocate() for a scope of the calling thread. It takes precedence over set_allocator.
class AllocatorScope {
 public:
  explicit AllocatorScope(Allocator allocator);
  ~AllocatorScope();
  AllocatorScope(const AllocatorScope&) = delete;
  AllocatorScope& operator=(const AllocatorScope&) = delete;

 private:
  Allocator previous_;
};

}  // namespace catena
