#include "catena/core/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "catena/core/error.h"

namespace catena {
namespace {

TEST(HostPool, GivesAlignedDisjointBlocks) {
  std::mt19937 rng(1);
  struct Live {
    StoragePtr storage;
    unsigned char mark;
  };
  std::vector<Live> live;
  for (int i = 0; i < 3000; ++i) {
    if (!live.empty() && rng() % 2) {
      const size_t k = rng() % live.size();
      auto* p = static_cast<unsigned char*>(live[k].storage->data);
      for (size_t b = 0; b < live[k].storage->bytes; b += 61) ASSERT_EQ(p[b], live[k].mark);
      live[k] = live.back();
      live.pop_back();
    } else {
      const size_t bytes = size_t{1} << (rng() % 17);
      StoragePtr s = allocate(cpu(0), bytes + rng() % 100);
      ASSERT_GE(s->bytes, bytes);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(s->data) % 64, 0u);
      const auto mark = static_cast<unsigned char>(rng());
      std::memset(s->data, mark, s->bytes);
      live.push_back({s, mark});
    }
  }
}

TEST(HostPool, CountsPerDevice) {
  const auto before = memory_statistics(cpu(7));
  {
    StoragePtr s = allocate(cpu(7), 1000);
    EXPECT_EQ(memory_statistics(cpu(7)).in_use, before.in_use + s->bytes);
  }
  EXPECT_EQ(memory_statistics(cpu(7)).in_use, before.in_use);
  EXPECT_EQ(memory_statistics(cpu(7)).allocations, before.allocations + 1);
}

TEST(HostPool, ThePeakBeginsAgain) {
  const StoragePtr kept = allocate(cpu(8), 1000);
  allocate(cpu(8), 100000);
  const size_t peak = memory_statistics(cpu(8)).peak_in_use;
  EXPECT_GE(peak, kept->bytes + 100000);
  reset_peak_memory(cpu(8));
  EXPECT_EQ(memory_statistics(cpu(8)).peak_in_use, memory_statistics(cpu(8)).in_use);
  const size_t more = allocate(cpu(8), 2000)->bytes;
  EXPECT_EQ(memory_statistics(cpu(8)).peak_in_use, memory_statistics(cpu(8)).in_use + more);
  EXPECT_THROW(reset_peak_memory(cuda_device(63)), DeviceError);
}

TEST(HostPool, RefusesBeyondTheLimit) {
  set_memory_limit(cpu(9), 1 << 20);
  EXPECT_NO_THROW(allocate(cpu(9), 1 << 10));
  EXPECT_THROW(allocate(cpu(9), 1 << 22), OutOfMemoryError);
  set_memory_limit(cpu(9), 0);
  try {
    allocate(cpu(9), size_t{1} << 60);
    FAIL() << "no error";
  } catch (const OutOfMemoryError& e) {
    EXPECT_NE(std::string(e.what()).find("no limit set"), std::string::npos) << e.what();
  }
}

TEST(HostPool, BlocksMayDieInAnotherThread) {
  std::vector<StoragePtr> blocks;
  const size_t before = memory_statistics(cpu(0)).in_use;
  for (int i = 0; i < 200; ++i) blocks.push_back(allocate(cpu(0), 4096));
  EXPECT_GE(memory_statistics(cpu(0)).in_use, before + 200 * 4096);
  std::thread([moved = std::move(blocks)]() mutable { moved.clear(); }).join();
  EXPECT_EQ(memory_statistics(cpu(0)).in_use, before);
  free_all_blocks(cpu(0));
  EXPECT_EQ(memory_statistics(cpu(0)).cached, 0u);
}

TEST(AllocatorHook, ServesTheThreadInItsScope) {
  int calls = 0;
  {
    AllocatorScope scope([&](Device d, size_t bytes) {
      ++calls;
      return allocate(d, bytes);
    });
    allocate(cpu(0), 10);
    allocate(cpu(0), 10);
  }
  allocate(cpu(0), 10);
  EXPECT_EQ(calls, 2);
}

TEST(BorrowedMemory, KeepsItsOwner) {
  auto owner = std::make_shared<std::vector<char>>(16);
  StoragePtr s = borrow(cpu(0), owner->data(), owner->size(), owner);
  EXPECT_EQ(owner.use_count(), 2);
  s.reset();
  EXPECT_EQ(owner.use_count(), 1);
}

}  // namespace
}  // namespace catena
