#include "catena/core/memory.h"

#include <charconv>
#include <cmath>

#include "catena/core/backend.h"
#include "catena/core/call_scope.h"
#include "catena/core/error.h"
#include "catena/core/graph.h"
#include "core/cpu_backend.h"
#include "core/part_storage.h"
#include "core/user_pool.h"

namespace catena {
namespace {

thread_local Allocator t_allocator;
thread_local bool t_in_allocator = false;  // an allocator's own requests go to the pool

// Never destroyed: arrays may be made while static objects go.
Allocator& process_allocator() {
  static Allocator* allocator = new Allocator;
  return *allocator;
}
// Scopes and set_allocator together: 0 means that nobody has replaced the pools.
std::atomic<int> g_allocators{0};

StoragePtr from_pool(Device device, size_t bytes) {
  if (device.is_cpu()) return cpu_allocate(device, bytes);
  return backend(device.type()).allocate(device.index(), bytes);
}

StoragePtr from_allocator(Device device, size_t bytes) {
  const Allocator& allocator = t_allocator ? t_allocator : process_allocator();
  // A graph's memory is its own: replays write into it.
  if (t_in_allocator || !allocator || (device.is_cuda() && cuda::capture_id() != 0))
    return from_pool(device, bytes);
  t_in_allocator = true;
  struct Leave {
    ~Leave() { t_in_allocator = false; }
  } leave;
  StoragePtr storage = allocator(device, bytes);
  CATENA_CHECK(ValueError, storage && storage->device == device && storage->bytes >= bytes,
               "allocate: the allocator was asked for ", bytes, " bytes on ", device, " and gave ",
               storage ? message(storage->bytes, " on ", storage->device) : "nothing");
  return storage;
}

[[gnu::noinline]] StoragePtr allocate_observed(Device device, size_t bytes) {
  StoragePtr storage = from_allocator(device, bytes);
  if (detail::memory_profiles.load(std::memory_order_relaxed) != 0 && !storage->observer)
    detail::observe_allocation(*storage);
  return storage;
}

}  // namespace

void Storage::destroy(Storage* storage) {
  if (storage->deleter) return storage->deleter(storage);
  // Replays of a graph that is being captured will use it. What parts belong to keeps itself.
  if (storage->owner && (storage->device.is_cuda() || storage->pinned) && cuda::capture_id() != 0 &&
      !whole_of(*storage))
    cuda::keep_with_graph(std::move(storage->owner));
  delete storage;
}

StoragePtr allocate(Device device, size_t bytes) {
  if (g_allocators.load(std::memory_order_relaxed) != 0 ||
      detail::memory_profiles.load(std::memory_order_relaxed) != 0) [[unlikely]]
    return allocate_observed(device, bytes);
  return from_pool(device, bytes);
}

StoragePtr allocate_unpooled(Device device, size_t bytes) {
  require_device(device);
  return backend(device.type()).allocate_unpooled(device.index(), bytes);
}

StoragePtr allocate_pinned(Device cpu_device, size_t bytes) {
  CATENA_CHECK(DeviceError, cpu_device.is_cpu(), "allocate_pinned: expected a CPU device, got ",
               cpu_device);
  StoragePtr storage = backend(DeviceType::kCuda).allocate_pinned(cpu_device, bytes);
  if (detail::memory_profiles.load(std::memory_order_relaxed) != 0)
    detail::observe_allocation(*storage);
  return storage;
}

StoragePtr borrow(Device device, void* data, size_t bytes, std::shared_ptr<void> owner) {
  StoragePtr storage(new Storage);
  storage->device = device;
  storage->data = data;
  storage->bytes = bytes;
  storage->owner = std::move(owner);
  return storage;
}

StoragePtr borrow_read_only(Device device, const void* data, size_t bytes,
                            std::shared_ptr<void> owner) {
  StoragePtr storage = borrow(device, const_cast<void*>(data), bytes, std::move(owner));
  storage->read_only = true;
  return storage;
}

void fail_read_only() {
  fail<ValueError>(
      "the array is read-only: it views a file mapped for reading or memory that "
      "another library lent for reading; write into a copy()");
}

void record_use(const Storage& storage, const Stream& stream) {
  if (storage.device.is_cpu() && !storage.pinned) return;
  if (const Storage* whole = whole_of(storage)) return record_use(*whole, stream);
  if (note_user_pool_use(storage, stream)) return;
  backend(DeviceType::kCuda).record_use(storage, stream);
}

PoolStatistics memory_statistics(Device device) {
  require_device(device);
  return backend(device.type()).statistics(device.index());
}
PoolStatistics pinned_memory_statistics() { return backend(DeviceType::kCuda).pinned_statistics(); }
void reset_peak_memory(Device device) {
  require_device(device);
  backend(device.type()).reset_peak(device.index());
}
void free_all_blocks(Device device) {
  require_device(device);
  backend(device.type()).free_all_blocks(device.index());
}
void free_all_pinned_blocks() { backend(DeviceType::kCuda).free_all_pinned_blocks(); }
void set_memory_limit(Device device, size_t bytes) {
  require_device(device);
  backend(device.type()).set_limit(device.index(), bytes);
}

size_t parse_memory_limit(std::string_view text, size_t total_bytes) {
  const auto refuse = [&] {
    fail<ValueError>("memory limit: '", text,
                     "' is neither a number of bytes nor a percentage such as 60%");
  };
  const bool percent = !text.empty() && text.back() == '%';
  const char* end = text.data() + text.size() - (percent ? 1 : 0);
  if (!percent) {
    size_t bytes = 0;
    const auto result = std::from_chars(text.data(), end, bytes);
    if (result.ec != std::errc() || result.ptr != end) refuse();
    return bytes;
  }
  double share = 0;
  const auto result = std::from_chars(text.data(), end, share);
  if (result.ec != std::errc() || result.ptr != end || !(share >= 0 && share <= 100)) refuse();
  return static_cast<size_t>(std::floor(static_cast<double>(total_bytes) * (share / 100)));
}

void set_allocator(Allocator allocator) {
  const bool had = bool(process_allocator());
  g_allocators.fetch_add(int{bool(allocator)} - int{had});
  process_allocator() = std::move(allocator);
}

AllocatorScope::AllocatorScope(Allocator allocator) {
  CATENA_CHECK(ValueError, bool(allocator),
               "AllocatorScope: expected a callable, got an empty function");
  previous_ = std::move(t_allocator);
  t_allocator = std::move(allocator);
  g_allocators.fetch_add(1);
}

AllocatorScope::~AllocatorScope() {
  t_allocator = std::move(previous_);
  g_allocators.fetch_sub(1);
}

}  // namespace catena
