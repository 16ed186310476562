#include "catena/core/memory_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <vector>

#include "catena/core/error.h"

namespace catena {
namespace {

TEST(DefaultMemoryPool, CountsBlocks) {
  MemoryPool pool = get_default_memory_pool();
  const Device device = cpu(0);
  pool.free_all_blocks(device);
  const size_t blocks = pool.n_free_blocks(device), bytes = pool.free_bytes(device);
  const size_t used = pool.used_bytes(device);
  {
    const StoragePtr a = pool.malloc(device, 3 << 20), b = pool.malloc(device, 3 << 20);
    EXPECT_EQ(pool.used_bytes(device), used + a->bytes + b->bytes);
    EXPECT_EQ(pool.n_free_blocks(device), blocks);
  }
  EXPECT_EQ(pool.used_bytes(device), used);
  if (pool.n_free_blocks(device) == blocks) GTEST_SKIP() << "SKIPPED: this build keeps no blocks";
  EXPECT_EQ(pool.n_free_blocks(device), blocks + 2);
  EXPECT_GE(pool.free_bytes(device), bytes + (6 << 20));
  EXPECT_EQ(pool.total_bytes(device), pool.used_bytes(device) + pool.free_bytes(device));
  {
    const StoragePtr again = pool.malloc(device, 3 << 20);
    EXPECT_EQ(pool.n_free_blocks(device), blocks + 1);
  }
  pool.free_all_blocks(device);
  EXPECT_EQ(pool.n_free_blocks(device), blocks);
  EXPECT_EQ(pool.free_bytes(device), bytes);
}

TEST(DefaultMemoryPool, HasALimitPerDevice) {
  MemoryPool pool = get_default_memory_pool();
  pool.set_limit(cpu(11), 1 << 20);
  EXPECT_EQ(pool.get_limit(cpu(11)), size_t{1} << 20);
  EXPECT_EQ(pool.get_limit(cpu(12)), 0u);
  EXPECT_THROW(pool.malloc(cpu(11), 2 << 20), OutOfMemoryError);
  pool.set_limit_fraction(cpu(11), 0.5);
  EXPECT_EQ(pool.get_limit(cpu(11)), memory_info(cpu(11)).total / 2);
  EXPECT_THROW(pool.set_limit_fraction(cpu(11), 1.5), ValueError);
  EXPECT_THROW(pool.set_limit_fraction(cpu(11), -0.1), ValueError);
  pool.set_limit(cpu(11), 0);
}

// Used and free bytes together stay within the limit, whatever sizes come one after the other.
TEST(MemoryPool, ALimitOfACpuDeviceIsForFreeBytesToo) {
  MemoryPool pool = get_default_memory_pool();
  const Device device = cpu(11);
  pool.free_all_blocks(device);
  const size_t limit = pool.total_bytes(device) + (size_t{8} << 20);
  pool.set_limit(device, limit);
  for (const size_t mib : {3, 5, 7, 2}) {
    pool.malloc(device, mib << 20);
    EXPECT_LE(pool.total_bytes(device), limit) << mib;
  }
  pool.set_limit(device, 0);
}

// Counts what a pool asks of its source.
struct Source {
  std::map<void*, size_t> live;
  int calls = 0, failures = 0;
  Allocator allocator() {
    return [this](Device device, size_t bytes) {
      ++calls;
      if (failures > 0) {
        --failures;
        throw OutOfMemoryError("full");
      }
      void* memory = std::malloc(bytes + 1);
      live[memory] = bytes;
      return borrow(device, memory, bytes, std::shared_ptr<void>(memory, [this](void* p) {
                      live.erase(p);
                      std::free(p);
                    }));
    };
  }
};

TEST(MemoryPool, ReusesTheLastFreedOfTheSameSize) {
  Source source;
  {
    MemoryPool pool(source.allocator());
    StoragePtr a = pool.malloc(cpu(1), 1000), b = pool.malloc(cpu(1), 1024);
    EXPECT_EQ(source.calls, 2);
    EXPECT_EQ(a->bytes, 1024u);
    EXPECT_EQ(pool.used_bytes(cpu(1)), 2048u);
    void* last = b->data;
    a.reset();
    b.reset();
    EXPECT_EQ(pool.used_bytes(cpu(1)), 0u);
    EXPECT_EQ(pool.free_bytes(cpu(1)), 2048u);
    EXPECT_EQ(pool.n_free_blocks(cpu(1)), 2u);
    EXPECT_EQ(pool.malloc(cpu(1), 600)->data, last);
    EXPECT_EQ(source.calls, 2);
    pool.malloc(cpu(1), 100);
    EXPECT_EQ(source.calls, 3) << "another size";
    pool.malloc(cpu(2), 600);
    EXPECT_EQ(source.calls, 4) << "another device";
    const Stream side = Stream::create(cpu(1));
    {
      StreamScope scope(side);
      pool.malloc(cpu(1), 600);
    }
    EXPECT_EQ(source.calls, 5) << "another stream";
    pool.free_all_blocks(cpu(1));
    EXPECT_EQ(pool.n_free_blocks(cpu(1)), 0u);
    EXPECT_EQ(source.live.size(), 1u) << "that of the other device stays";
  }
  EXPECT_TRUE(source.live.empty());
}

TEST(MemoryPool, RetriesOnceWithoutItsFreeBlocks) {
  Source source;
  MemoryPool pool(source.allocator());
  pool.malloc(cpu(0), 512);
  EXPECT_EQ(pool.n_free_blocks(cpu(0)), 1u);
  source.failures = 1;
  const StoragePtr large = pool.malloc(cpu(0), 4096);
  EXPECT_EQ(pool.n_free_blocks(cpu(0)), 0u);
  source.failures = 2;
  EXPECT_THROW(pool.malloc(cpu(0), 8192), OutOfMemoryError);
  EXPECT_EQ(pool.used_bytes(cpu(0)), 4096u);
  const StoragePtr nothing = pool.malloc(cpu(0), 0);
  EXPECT_EQ(pool.used_bytes(cpu(0)), 4096u) << "zero bytes are not the pool's";
}

TEST(MemoryPool, KeepsItsLimit) {
  Source source;
  MemoryPool pool(source.allocator());
  pool.set_limit(cpu(0), 2048);
  StoragePtr a = pool.malloc(cpu(0), 1024);
  pool.malloc(cpu(0), 1024);  // free again at once
  EXPECT_THROW(pool.malloc(cpu(0), 2048), OutOfMemoryError);
  EXPECT_EQ(pool.n_free_blocks(cpu(0)), 0u);
  a.reset();
  EXPECT_NO_THROW(pool.malloc(cpu(0), 2048));
}

TEST(MemoryPool, BlocksOutliveIt) {
  Source source;
  StoragePtr kept;
  {
    MemoryPool pool(source.allocator());
    kept = pool.malloc(cpu(0), 100);
    pool.malloc(cpu(0), 1000);
  }
  EXPECT_EQ(source.live.size(), 1u);
  kept.reset();
  EXPECT_TRUE(source.live.empty());
  EXPECT_THROW(MemoryPool{Allocator()}, ValueError);
}

TEST(MemoryPool, ServesManyThreads) {
  MemoryPool pool;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      std::vector<StoragePtr> blocks;
      for (int i = 0; i < 500; ++i) {
        blocks.push_back(pool.malloc(cpu(0), size_t(64 << (i % 5))));
        static_cast<char*>(blocks.back()->data)[0] = char(t);
        if (blocks.size() > 8) blocks.erase(blocks.begin());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.used_bytes(cpu(0)), 0u);
}

TEST(SetAllocator, ServesAllThreadsUntilItIsTakenBack) {
  MemoryPool pool;
  set_allocator(pool.allocator());
  std::thread([&] {
    const StoragePtr s = allocate(cpu(0), 100);
    EXPECT_EQ(pool.used_bytes(cpu(0)), 512u);
  }).join();
  {
    AllocatorScope scope(&allocate_unpooled);  // closer than the process's
    allocate(cpu(0), 100);
    EXPECT_EQ(pool.n_free_blocks(cpu(0)), 1u);
  }
  set_allocator({});
  const size_t before = memory_statistics(cpu(0)).in_use;
  const StoragePtr s = allocate(cpu(0), 100);
  EXPECT_GT(memory_statistics(cpu(0)).in_use, before);
  EXPECT_EQ(pool.used_bytes(cpu(0)), 0u);
}

TEST(SetAllocator, WithoutPoolingAllocatesEachTime) {
  set_allocator(&allocate_unpooled);
  const size_t before = memory_statistics(cpu(0)).in_use;
  {
    const StoragePtr s = allocate(cpu(3), 1000);
    EXPECT_EQ(s->device, cpu(3));
    EXPECT_EQ(s->bytes, 1000u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(s->data) % 64, 0u);
    EXPECT_EQ(memory_statistics(cpu(0)).in_use, before);
    EXPECT_NO_THROW(allocate(cpu(3), 0));
  }
  set_allocator(nullptr);
  EXPECT_THROW(allocate_unpooled(cpu(0), size_t{1} << 62), OutOfMemoryError);
}

TEST(SetAllocator, RefusesMemoryThatDoesNotFit) {
  AllocatorScope scope([](Device, size_t bytes) { return allocate_unpooled(cpu(5), bytes); });
  EXPECT_NO_THROW(allocate(cpu(5), 10));
  EXPECT_THROW(allocate(cpu(4), 10), ValueError) << "another device";
  AllocatorScope nothing([](Device, size_t) { return StoragePtr(); });
  EXPECT_THROW(allocate(cpu(5), 10), ValueError);
  AllocatorScope small([](Device d, size_t) { return allocate_unpooled(d, 4); });
  EXPECT_THROW(allocate(cpu(5), 10), ValueError);
}

TEST(PinnedMemoryPool, IsEmptyWithoutAGpu) {
  PinnedMemoryPool pool = get_default_pinned_memory_pool();
  if (device_count(DeviceType::kCuda) > 0) GTEST_SKIP() << "SKIPPED: this machine has a GPU";
  EXPECT_EQ(pool.total_bytes(), 0u);
  EXPECT_EQ(pool.used_bytes(), 0u);
  EXPECT_EQ(pool.n_free_blocks(), 0u);
  pool.free_all_blocks();
  EXPECT_THROW(pool.malloc(10), DeviceError);
}

TEST(MemoryLimit, IsBytesOrAPercentage) {
  EXPECT_EQ(parse_memory_limit("1073741824", 100), 1073741824u);
  EXPECT_EQ(parse_memory_limit("0", 100), 0u);
  EXPECT_EQ(parse_memory_limit("60%", 1000), 600u);
  EXPECT_EQ(parse_memory_limit("12.5%", 1000), 125u);
  EXPECT_EQ(parse_memory_limit("100%", 1000), 1000u);
  for (const char* wrong : {"", "%", "-1", "101%", "-5%", "1 GB", "x%", "5%%", "1e3", "nan%"})
    EXPECT_THROW(parse_memory_limit(wrong, 1000), ValueError) << wrong;
}

}  // namespace
}  // namespace catena
