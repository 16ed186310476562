// Memory pools as objects: the library's own, and pools that programs make for themselves.
#pragma once

#include <memory>

#include "catena/core/memory.h"

namespace catena {

// A handle to a pool of blocks of every device; copies share the pool. Sizes are multiples of 512
// bytes on GPUs (of 64 in the library's pool of host memory, which all CPU devices share: free
// blocks there are counted together).
class MemoryPool {
 public:
  // A separate pool over `base`. It keeps freed blocks for requests of the same size on the same
  // stream, the last freed first. Before reuse, the block's stream waits for every other stream
  // recorded with record_use(). Blocks still alive when the last handle is destroyed are returned
  // to `base` when they are freed.
  explicit MemoryPool(Allocator base = &allocate_unpooled);
  // The one that arrays come from unless an allocator is set: a caching pool with size classes.
  static MemoryPool default_pool();
  // Handles to one pool, also after a move.
  MemoryPool(const MemoryPool&) = default;
  MemoryPool& operator=(const MemoryPool&) = default;

  // A block for work on the calling thread's current stream. When there is no more memory, the free
  // blocks are given back and the request repeated, then OutOfMemoryError. Zero bytes give an empty
  // block outside of the pool.
  StoragePtr malloc(Device device, size_t bytes);
  StoragePtr malloc(size_t bytes) { return malloc(current_device(), bytes); }
  // For set_allocator and AllocatorScope; keeps the pool.
  Allocator allocator() const;

  size_t used_bytes(Device device = current_device()) const;     // of blocks that are alive
  size_t free_bytes(Device device = current_device()) const;     // kept for reuse
  size_t total_bytes(Device device = current_device()) const;    // both
  size_t n_free_blocks(Device device = current_device()) const;  // that free_bytes consists of
  // Gives the free blocks back, after the work that may still use them.
  void free_all_blocks(Device device = current_device());
  // The most that used and free bytes may be together; 0: no limit.
  void set_limit(Device device, size_t bytes);
  // The same as a share of the device's memory; ValueError outside [0, 1].
  void set_limit_fraction(Device device, double fraction);
  size_t get_limit(Device device = current_device()) const;

  struct Impl;  // the library's own

 private:
  explicit MemoryPool(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

// Page-locked host memory that arrays and copies share. Without a GPU it is empty and malloc throws
// DeviceError.
class PinnedMemoryPool {
 public:
  StoragePtr malloc(size_t bytes) { return allocate_pinned(cpu(0), bytes); }
  size_t used_bytes() const;
  size_t free_bytes() const;
  size_t total_bytes() const { return used_bytes() + free_bytes(); }
  size_t n_free_blocks() const;  // that free_bytes consists of
  void free_all_blocks();        // gives them back
};

// CuPy's names for the library's own pools.
inline MemoryPool get_default_memory_pool() { return MemoryPool::default_pool(); }
inline PinnedMemoryPool get_default_pinned_memory_pool() { return {}; }

}  // namespace catena
