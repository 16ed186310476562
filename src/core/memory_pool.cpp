#include "catena/core/memory_pool.h"

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "catena/core/backend.h"
#include "catena/core/error.h"
#include "catena/core/fork_mutex.h"
#include "catena/core/graph.h"
#include "core/user_pool.h"

namespace catena {
namespace {

constexpr size_t kUnit = 512;

}  // namespace

struct MemoryPool::Impl {
  virtual ~Impl() = default;
  virtual StoragePtr malloc(Device device, size_t bytes) = 0;
  virtual PoolStatistics statistics(Device device) = 0;
  virtual void free_all_blocks(Device device) = 0;
  virtual void set_limit(Device device, size_t bytes) = 0;
};

namespace {

// The backends' pools.
struct DefaultPool final : MemoryPool::Impl {
  StoragePtr malloc(Device device, size_t bytes) override {
    require_device(device);
    return backend(device.type()).allocate(device.index(), bytes);
  }
  PoolStatistics statistics(Device device) override { return memory_statistics(device); }
  void free_all_blocks(Device device) override { catena::free_all_blocks(device); }
  void set_limit(Device device, size_t bytes) override { set_memory_limit(device, bytes); }
};

struct UserPool;

struct UserBlock {
  StoragePtr memory;
  Device device;
  size_t size = 0;
  Stream home;                 // whose order the block is reused in
  std::vector<Stream> uses;    // by other streams, since it was handed out
  std::vector<Event> pending;  // of the uses before
  std::weak_ptr<UserPool> pool;
};

struct UserPool final : MemoryPool::Impl, std::enable_shared_from_this<UserPool> {
  // Device, size and stream; a block holds its stream, so the address stays its own.
  using Key = std::tuple<int, int, size_t, StreamState*>;
  struct Counts {
    size_t used = 0, free = 0, blocks = 0, limit = 0;
  };

  const Allocator base;
  ForkMutex mutex;
  std::map<Key, std::vector<UserBlock*>> free;
  Counts counts[kDeviceTypeCount][kMaxDevices];

  explicit UserPool(Allocator allocator) : base(std::move(allocator)) {}
  ~UserPool() override {
    for (auto& [key, list] : free) {
      for (UserBlock* block : list) delete block;
    }
  }

  static Key key_of(Device device, size_t size, const Stream& stream) {
    return {static_cast<int>(device.type()), device.index(), size, stream.state()};
  }
  Counts& counts_of(Device device) {
    return counts[static_cast<int>(device.type())][device.index()];
  }

  UserBlock* take(Device device, size_t size, const Stream& stream) {
    std::lock_guard lock(mutex);
    const auto found = free.find(key_of(device, size, stream));
    if (found == free.end() || found->second.empty()) return nullptr;
    UserBlock* block = found->second.back();
    found->second.pop_back();
    Counts& c = counts_of(device);
    c.free -= size;
    c.used += size;
    --c.blocks;
    return block;
  }

  bool admits(Device device, size_t size) {
    std::lock_guard lock(mutex);
    const Counts& c = counts_of(device);
    return c.limit == 0 || c.used + c.free + size <= c.limit;
  }

  StoragePtr from_base(Device device, size_t size) {
    if (admits(device, size)) {
      try {
        return base(device, size);
      } catch (const OutOfMemoryError&) {  // the free blocks may be what is missing
      }
    }
    free_all_blocks(device);
    if (!admits(device, size)) {
      std::lock_guard lock(mutex);
      const Counts& c = counts_of(device);
      fail<OutOfMemoryError>("MemoryPool: out of memory on ", device, ": asked for ", size,
                             " bytes; in use ", c.used, ", limit ", c.limit);
    }
    return base(device, size);
  }

  StoragePtr malloc(Device device, size_t bytes) override {
    CATENA_CHECK(Error, device.is_cpu() || cuda::capture_id() == 0,
                 "MemoryPool::malloc: a CUDA graph is being captured; its memory comes from a"
                 " private pool; use allocate()");
    if (bytes == 0) return base(device, 0);
    const size_t size = (bytes + kUnit - 1) / kUnit * kUnit;
    CATENA_CHECK(OutOfMemoryError, size >= bytes, "MemoryPool: out of memory on ", device,
                 ": asked for ", bytes, " bytes");
    const Stream stream = current_stream(device);
    UserBlock* block = take(device, size, stream);
    if (block) {
      for (const Event& event : block->pending) stream.wait(event);
      block->pending.clear();
    } else {
      StoragePtr memory = from_base(device, size);
      block = new UserBlock{std::move(memory), device, size, stream, {}, {}, weak_from_this()};
      std::lock_guard lock(mutex);
      counts_of(device).used += size;
    }
    StoragePtr storage(new Storage);
    storage->device = device;
    storage->pinned = block->memory->pinned;
    storage->data = block->memory->data;
    storage->bytes = size;
    storage->block = block;
    storage->deleter = &UserPool::release;
    return storage;
  }

  static void release(Storage* storage) {
    auto* block = static_cast<UserBlock*>(storage->block);
    delete storage;
    if ((block->device.is_cuda() || block->memory->pinned) && cuda::capture_id() != 0)
      cuda::keep_with_graph(std::shared_ptr<void>(block, &UserPool::take_back));
    else
      take_back(block);
  }

  static void take_back(void* released) {
    auto* block = static_cast<UserBlock*>(released);
    for (const Stream& stream : block->uses) block->pending.push_back(stream.record());
    block->uses.clear();
    const std::shared_ptr<UserPool> pool = block->pool.lock();
    if (!pool) {
      for (const Event& event : block->pending) event.synchronize();
      delete block;
      return;
    }
    std::lock_guard lock(pool->mutex);
    Counts& c = pool->counts_of(block->device);
    c.used -= block->size;
    c.free += block->size;
    ++c.blocks;
    pool->free[key_of(block->device, block->size, block->home)].push_back(block);
  }

  PoolStatistics statistics(Device device) override {
    std::lock_guard lock(mutex);
    const Counts& c = counts_of(device);
    PoolStatistics s;
    s.in_use = c.used;
    s.cached = c.free;
    s.limit = c.limit;
    s.free_blocks = c.blocks;
    return s;
  }

  void free_all_blocks(Device device) override {
    std::vector<UserBlock*> dropped;
    {
      std::lock_guard lock(mutex);
      for (auto& [key, list] : free) {
        if (std::get<0>(key) != static_cast<int>(device.type()) ||
            std::get<1>(key) != device.index())
          continue;
        dropped.insert(dropped.end(), list.begin(), list.end());
        list.clear();
      }
      Counts& c = counts_of(device);
      c.free = c.blocks = 0;
    }
    for (UserBlock* block : dropped) {
      for (const Event& event : block->pending) event.synchronize();
      delete block;
    }
  }

  void set_limit(Device device, size_t bytes) override {
    std::lock_guard lock(mutex);
    counts_of(device).limit = bytes;
  }
};

}  // namespace

bool note_user_pool_use(const Storage& storage, const Stream& stream) {
  if (storage.deleter != &UserPool::release) return false;
  auto* block = static_cast<UserBlock*>(storage.block);
  if (cuda::capture_id() != 0) {
    // Events of a capture do not cover replays.
    cuda::keep_with_graph(std::make_shared<StoragePtr>(const_cast<Storage*>(&storage)));
    return true;
  }
  const std::shared_ptr<UserPool> pool = block->pool.lock();
  std::unique_lock<ForkMutex> lock;
  if (pool) lock = std::unique_lock(pool->mutex);
  if (stream == block->home) return true;
  for (const Stream& used : block->uses) {
    if (used == stream) return true;
  }
  block->uses.push_back(stream);
  return true;
}

MemoryPool::MemoryPool(Allocator base) {
  CATENA_CHECK(ValueError, bool(base), "MemoryPool: expected an allocator, got an empty function");
  impl_ = std::make_shared<UserPool>(std::move(base));
}

MemoryPool MemoryPool::default_pool() {
  static const auto* pool = new std::shared_ptr<Impl>(std::make_shared<DefaultPool>());
  return MemoryPool(*pool);
}

StoragePtr MemoryPool::malloc(Device device, size_t bytes) { return impl_->malloc(device, bytes); }
Allocator MemoryPool::allocator() const {
  return [impl = impl_](Device device, size_t bytes) { return impl->malloc(device, bytes); };
}
size_t MemoryPool::used_bytes(Device device) const { return impl_->statistics(device).in_use; }
size_t MemoryPool::free_bytes(Device device) const { return impl_->statistics(device).cached; }
size_t MemoryPool::total_bytes(Device device) const {
  const PoolStatistics s = impl_->statistics(device);
  return s.in_use + s.cached;
}
size_t MemoryPool::n_free_blocks(Device device) const {
  return impl_->statistics(device).free_blocks;
}
void MemoryPool::free_all_blocks(Device device) { impl_->free_all_blocks(device); }
void MemoryPool::set_limit(Device device, size_t bytes) { impl_->set_limit(device, bytes); }
void MemoryPool::set_limit_fraction(Device device, double fraction) {
  CATENA_CHECK(ValueError, fraction >= 0 && fraction <= 1,
               "MemoryPool::set_limit_fraction: expected a share of [0, 1], got ", fraction);
  const auto total = static_cast<double>(memory_info(device).total);
  set_limit(device, static_cast<size_t>(total * fraction));
}
size_t MemoryPool::get_limit(Device device) const { return impl_->statistics(device).limit; }

namespace {

PoolStatistics pinned() {
  Backend* b = find_backend(DeviceType::kCuda);
  return b ? b->pinned_statistics() : PoolStatistics{};
}

}  // namespace

size_t PinnedMemoryPool::used_bytes() const { return pinned().in_use; }
size_t PinnedMemoryPool::free_bytes() const { return pinned().cached; }
size_t PinnedMemoryPool::n_free_blocks() const { return pinned().free_blocks; }
void PinnedMemoryPool::free_all_blocks() {
  if (Backend* b = find_backend(DeviceType::kCuda)) b->free_all_pinned_blocks();
}

}  // namespace catena
