#include "catena/core/memory.h"

#include "catena/core/backend.h"
#include "catena/core/error.h"
#include "core/cpu_backend.h"

namespace catena {
namespace {

thread_local Allocator t_allocator;
thread_local bool t_has_allocator = false;

}  // namespace

void Storage::destroy(Storage* storage) {
  if (storage->deleter)
    storage->deleter(storage);
  else
    delete storage;
}

StoragePtr allocate(Device device, size_t bytes) {
  if (t_has_allocator) [[unlikely]] {
    t_has_allocator = false;  // the hook itself allocates from the pool
    struct Restore {
      ~Restore() { t_has_allocator = true; }
    } restore;
    return t_allocator(device, bytes);
  }
  if (device.is_cpu()) return cpu_allocate(device, bytes);
  return backend(device.type()).allocate(device.index(), bytes);
}

StoragePtr allocate_pinned(Device cpu_device, size_t bytes) {
  CATENA_CHECK(DeviceError, cpu_device.is_cpu(), "allocate_pinned: expected a CPU device, got ",
               cpu_device);
  return backend(DeviceType::kCuda).allocate_pinned(cpu_device, bytes);
}

StoragePtr borrow(Device device, void* data, size_t bytes, std::shared_ptr<void> owner) {
  StoragePtr storage(new Storage);
  storage->device = device;
  storage->data = data;
  storage->bytes = bytes;
  storage->owner = std::move(owner);
  return storage;
}

void record_use(const Storage& storage, const Stream& stream) {
  if (storage.device.is_cpu() && !storage.pinned) return;
  backend(DeviceType::kCuda).record_use(storage, stream);
}

PoolStatistics memory_statistics(Device device) {
  require_device(device);
  return backend(device.type()).statistics(device.index());
}
PoolStatistics pinned_memory_statistics() { return backend(DeviceType::kCuda).pinned_statistics(); }
void free_all_blocks(Device device) {
  require_device(device);
  backend(device.type()).free_all_blocks(device.index());
}
void free_all_pinned_blocks() { backend(DeviceType::kCuda).free_all_pinned_blocks(); }
void set_memory_limit(Device device, size_t bytes) {
  require_device(device);
  backend(device.type()).set_limit(device.index(), bytes);
}

AllocatorScope::AllocatorScope(Allocator allocator) {
  CATENA_CHECK(ValueError, bool(allocator),
               "AllocatorScope: expected a callable, got an empty function");
  previous_ = t_has_allocator ? t_allocator : Allocator();
  t_allocator = std::move(allocator);
  t_has_allocator = true;
}

AllocatorScope::~AllocatorScope() {
  t_allocator = previous_;
  t_has_allocator = bool(previous_);
}

}  // namespace catena
