// The caching allocator of host memory, by classes of sizes. See cpu_backend.h.
#include <sys/mman.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "catena/core/error.h"
#include "catena/core/fork_mutex.h"
#include "core/cpu_backend.h"

// Under AddressSanitizer every array is its own malloc block, so that stray accesses are seen.
#if defined(__has_feature)  // clang
#if __has_feature(address_sanitizer)
#define CATENA_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(CATENA_ADDRESS_SANITIZER)
#define CATENA_POOL_CACHES 0
#else
#define CATENA_POOL_CACHES 1
#endif

namespace catena {
namespace {

// Data starts this many bytes after the Storage object: vector loads want 64-byte alignment.
constexpr size_t kHeaderBytes = 128;
static_assert(sizeof(Storage) <= kHeaderBytes);

// Size classes: four steps per power of two from 64 bytes, so that at most a fifth is wasted.
constexpr int kClassCount = 4 * 40;
constexpr int kSmallClasses = 4 * 11;       // up to 128 KiB: kept per thread
constexpr size_t kSmallPerClass = 32;       // blocks a thread keeps of one class
constexpr size_t kPage = size_t{64} << 10;  // a multiple of any system's
constexpr size_t kHugePage = size_t{2} << 20;

int size_class(size_t bytes) {
  const size_t units = (bytes + 63) / 64;
  if (units <= 4) return static_cast<int>(units ? units : 1) - 1;
  const int power = std::bit_width(units - 1) - 1;  // 2^power < units <= 2^(power+1)
  const size_t quarter = ((units - 1) >> (power - 2)) & 3;
  return 4 * (power - 1) + static_cast<int>(quarter);
}

size_t class_bytes(int cls) {
  if (cls < 4) return 64 * (size_t(cls) + 1);
  const int power = cls / 4 + 1;
  return 64 * ((size_t{1} << power) + (size_t(cls % 4) + 1) * (size_t{1} << (power - 2)));
}

struct Counters {
  std::atomic<size_t> in_use{0}, peak{0}, limit{0};
  std::atomic<uint64_t> allocations{0}, system_allocations{0};
};
Counters g_counters[kMaxDevices];

// Blocks kept for reuse and their bytes (multiples of 64), both in one word: a count costs no
// second atomic operation.
constexpr uint64_t kOneBlock = uint64_t{1} << 36;
std::atomic<uint64_t> g_cached{0};
[[maybe_unused]] uint64_t cached(size_t blocks, size_t bytes) {
  return blocks * kOneBlock + bytes / 64;
}
size_t cached_bytes() { return (g_cached.load(std::memory_order_relaxed) % kOneBlock) * 64; }
size_t cached_blocks() { return g_cached.load(std::memory_order_relaxed) / kOneBlock; }

size_t rounded(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// Large blocks are mappings, so that what is given back leaves the process: malloc keeps blocks of
// up to 32 MiB in its heap, between those that are alive.
bool is_mapped(size_t bytes) { return CATENA_POOL_CACHES != 0 && bytes >= kHugePage; }
size_t mapped_size(size_t bytes) { return rounded(bytes, kPage); }

// Begins at a huge page; null if there is no memory.
void* map_block(size_t bytes) {
  const size_t size = mapped_size(bytes);
  void* memory =
      mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  char* const first = static_cast<char*>(memory);
  const auto address = reinterpret_cast<uintptr_t>(first);
  const size_t before = rounded(address, kHugePage) - address;
  char* const block = first + before;
  if (before > 0) munmap(first, before);
  munmap(block + size, kHugePage - before);
  madvise(block, size, MADV_HUGEPAGE);  // a hint: failure is fine
  return block;
}

void* system_allocate(size_t bytes) {
  return is_mapped(bytes) ? map_block(bytes) : std::aligned_alloc(64, rounded(bytes, 64));
}

void system_free(void* block, size_t bytes) {
  if (is_mapped(bytes))
    munmap(block, mapped_size(bytes));
  else
    std::free(block);
}

// Blocks shared by all threads; never destroyed, because arrays may outlive static objects.
struct SharedCache {
  ForkMutex mutex;
  std::array<std::vector<void*>, kClassCount> free;
};
SharedCache& shared_cache() {
  static SharedCache* cache = new SharedCache;
  return *cache;
}

struct ThreadCache {
  std::array<std::vector<void*>, kSmallClasses> free;
  ~ThreadCache();
};
thread_local bool t_cache_gone = false;
thread_local ThreadCache t_cache;

ThreadCache::~ThreadCache() {
  t_cache_gone = true;
  SharedCache& shared = shared_cache();
  std::lock_guard lock(shared.mutex);
  for (int c = 0; c < kSmallClasses; ++c) {
    for (void* block : free[c]) shared.free[c].push_back(block);
  }
}

[[maybe_unused]] void* take_cached(int cls) {
  if (cls < kSmallClasses && !t_cache_gone) {
    auto& list = t_cache.free[cls];
    if (!list.empty()) {
      void* block = list.back();
      list.pop_back();
      return block;
    }
  }
  SharedCache& shared = shared_cache();
  std::lock_guard lock(shared.mutex);
  auto& list = shared.free[cls];
  if (list.empty()) return nullptr;
  void* block = list.back();
  list.pop_back();
  return block;
}

[[maybe_unused]] void put_cached(int cls, void* block) {
  if (cls < kSmallClasses && !t_cache_gone) {
    auto& list = t_cache.free[cls];
    if (list.size() < kSmallPerClass) return list.push_back(block);
  }
  SharedCache& shared = shared_cache();
  std::lock_guard lock(shared.mutex);
  shared.free[cls].push_back(block);
}

void release_block(Storage* storage) {
  const size_t bytes = storage->bytes;
  g_counters[storage->device.index()].in_use.fetch_sub(bytes, std::memory_order_relaxed);
  storage->~Storage();
#if CATENA_POOL_CACHES
  g_cached.fetch_add(cached(1, bytes), std::memory_order_relaxed);
  put_cached(size_class(bytes), storage);
#else
  system_free(storage, kHeaderBytes + bytes);
#endif
}

void count_allocation(Counters& c, size_t bytes) {
  const size_t now = c.in_use.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (now > c.peak.load(std::memory_order_relaxed)) c.peak.store(now, std::memory_order_relaxed);
  c.allocations.fetch_add(1, std::memory_order_relaxed);
}

[[noreturn]] void out_of_memory(Device device, size_t bytes) {
  const Counters& c = g_counters[device.index()];
  const size_t limit = c.limit.load();
  fail<OutOfMemoryError>("out of memory on ", device, ": asked for ", bytes, " bytes; in use ",
                         c.in_use.load(), ", cached ", cached_bytes(), ", ",
                         limit == 0 ? "no limit set" : message("limit ", limit));
}

void* obtain_block(Device device, int cls, size_t bytes) {
#if CATENA_POOL_CACHES
  if (void* block = take_cached(cls)) {
    g_cached.fetch_sub(cached(1, bytes), std::memory_order_relaxed);
    return block;
  }
#endif
  Counters& counters = g_counters[device.index()];
  // The limit is one for used and cached bytes. What other threads keep for themselves may remain.
  const size_t limit = counters.limit.load(std::memory_order_relaxed);
  if (limit != 0 && counters.in_use.load() + cached_bytes() + bytes > limit) cpu_pool_free_all();
  counters.system_allocations.fetch_add(1, std::memory_order_relaxed);
  void* block = system_allocate(kHeaderBytes + bytes);
  if (block == nullptr) {
    cpu_pool_free_all();
    block = system_allocate(kHeaderBytes + bytes);
  }
  if (block == nullptr) out_of_memory(device, bytes);
  return block;
}

}  // namespace

StoragePtr cpu_allocate(Device device, size_t asked) {
  if (asked > (size_t{1} << 44)) out_of_memory(device, asked);
  const int cls = size_class(asked);
  const size_t bytes = class_bytes(cls);
  Counters& counters = g_counters[device.index()];
  const size_t limit = counters.limit.load(std::memory_order_relaxed);
  if (limit != 0 && counters.in_use.load(std::memory_order_relaxed) + bytes > limit)
    out_of_memory(device, asked);
  void* block = obtain_block(device, cls, bytes);
  auto* storage = new (block) Storage;
  storage->device = device;
  storage->data = static_cast<char*>(block) + kHeaderBytes;
  storage->bytes = bytes;
  storage->deleter = &release_block;
  count_allocation(counters, bytes);
  return StoragePtr(storage);
}

PoolStatistics cpu_pool_statistics(int index) {
  const Counters& c = g_counters[index];
  PoolStatistics s;
  s.in_use = c.in_use;
  s.cached = cached_bytes();
  s.free_blocks = cached_blocks();
  s.peak_in_use = c.peak;
  s.limit = c.limit;
  s.allocations = c.allocations;
  s.device_allocations = c.system_allocations;
  return s;
}

void cpu_pool_free_all() {
  SharedCache& shared = shared_cache();
  std::lock_guard lock(shared.mutex);
  for (int c = 0; c < kClassCount; ++c) {
    auto drop = [c](std::vector<void*>& list) {
      for (void* block : list) system_free(block, kHeaderBytes + class_bytes(c));
      g_cached.fetch_sub(cached(list.size(), list.size() * class_bytes(c)),
                         std::memory_order_relaxed);
      list.clear();
    };
    drop(shared.free[c]);
    if (c < kSmallClasses && !t_cache_gone) drop(t_cache.free[c]);
  }
}

void cpu_pool_set_limit(int index, size_t bytes) { g_counters[index].limit = bytes; }
void cpu_pool_reset_peak(int index) { g_counters[index].peak = g_counters[index].in_use.load(); }

}  // namespace catena
