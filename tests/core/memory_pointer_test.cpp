#include "catena/core/memory_pointer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "catena/core/error.h"
#include "catena/testing_markers.h"

namespace catena {
namespace {

// cpu:0 and cpu:1, and a GPU where there is one.
std::vector<Device> devices() {
  std::vector<Device> all = {cpu(0), cpu(1)};
  if (device_count(DeviceType::kCuda) > 0) all.push_back(cuda_device(0));
  return all;
}

std::vector<unsigned char> bytes_of(const MemoryPointer& p, size_t count) {
  std::vector<unsigned char> bytes(count);
  p.copy_to_host(bytes.data(), count);
  return bytes;
}

TEST(Memory, OfNoBytesHasNoDevice) {
  const Memory nothing(0);
  EXPECT_FALSE(nothing.device());
  EXPECT_EQ(nothing.ptr(), nullptr);
  const MemoryPointer pointer(nothing);
  EXPECT_FALSE(pointer.device());
  pointer.memset(1, 0);
  pointer.copy_from_host(nullptr, 0);
  pointer.copy_to_host(nullptr, 0);
  pointer.copy_from(nullptr, 0);
  pointer.copy_from_device(pointer, 0);
  EXPECT_THROW(pointer.memset(1, 1), ValueError);
  EXPECT_FALSE(MemoryPointer().device());
}

TEST(MemoryPointer, MovesByBytesAndKeepsTheBlock) {
  MemoryPointer p;
  {
    const Memory memory(64, cpu(1));
    EXPECT_EQ(memory.size(), 64u);
    p = MemoryPointer(memory, 8);
    EXPECT_EQ(p.ptr(), static_cast<char*>(memory.ptr()) + 8);
  }
  EXPECT_EQ(p.device(), cpu(1));
  EXPECT_EQ(p.available(), 56u);
  const MemoryPointer q = 16 + p;
  EXPECT_EQ(static_cast<char*>(q.ptr()) - static_cast<char*>(p.ptr()), 16);
  EXPECT_EQ((q - 24).available(), 64u);
  p += 56;
  EXPECT_EQ(p.available(), 0u);
  EXPECT_THROW(p += 1, ValueError);
  EXPECT_THROW(p -= 65, ValueError);
  p -= 64;
  EXPECT_EQ(p.available(), 64u);
  EXPECT_THROW(MemoryPointer(Memory(4), 5), ValueError);
}

TEST(MemoryPointer, CopiesAndFills) {
  for (Device device : devices()) {
    SCOPED_TRACE(device.name());
    const MemoryPointer p(Memory(16, device));
    p.memset(0x107, 16);
    EXPECT_EQ(bytes_of(p, 16), std::vector<unsigned char>(16, 7));
    const std::vector<unsigned char> source = {1, 2, 3, 4};
    (p + 4).copy_from_host(source.data(), 4);
    (p + 12).copy_from(source.data(), 4);
    EXPECT_EQ(bytes_of(p, 16),
              (std::vector<unsigned char>{7, 7, 7, 7, 1, 2, 3, 4, 7, 7, 7, 7, 1, 2, 3, 4}));
    const Stream stream = Stream::create(device);
    stream.wait(current_stream(device));
    p.memset_async(0, 4, stream);
    (p + 8).copy_from_host_async(source.data(), 4, stream);
    p.copy_from_async(source.data(), 1, stream);
    std::vector<unsigned char> out(16);
    p.copy_to_host_async(out.data(), 16, stream);
    stream.synchronize();
    EXPECT_EQ(out, (std::vector<unsigned char>{1, 0, 0, 0, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}));
    EXPECT_THROW(p.memset(0, 17), ValueError);
    EXPECT_THROW(p.copy_from_host(source.data(), 17), ValueError);
    EXPECT_THROW((p + 13).copy_to_host(out.data(), 4), ValueError);
    EXPECT_THROW(p.memset_async(0, 4, Stream::create(cpu(9))), DeviceError);
  }
}

TEST(MemoryPointer, CopiesBetweenDevices) {
  for (Device from : devices()) {
    for (Device to : devices()) {
      SCOPED_TRACE(from.name() + " to " + to.name());
      const MemoryPointer a(Memory(8, from)), b(Memory(8, to)), c(Memory(8, to));
      const std::vector<unsigned char> source = {1, 2, 3, 4, 5, 6, 7, 8};
      a.copy_from_host(source.data(), 8);
      b.copy_from_device(a, 8);
      EXPECT_EQ(bytes_of(b, 8), source);
      b.memset(0, 8);
      b.copy_from(a + 4, 4);
      EXPECT_EQ(bytes_of(b, 8), (std::vector<unsigned char>{5, 6, 7, 8, 0, 0, 0, 0}));
      c.copy_from(a.ptr(), 8);
      EXPECT_EQ(bytes_of(c, 8), source);
      c.memset(0, 8);
      const Stream stream = Stream::create(to.is_cpu() ? from : to);
      current_stream(to).synchronize();  // memset is enqueued
      c.copy_from_device_async(a, 8, stream);
      stream.synchronize();
      EXPECT_EQ(bytes_of(c, 8), source);
      EXPECT_THROW((b + 4).copy_from_device(a, 8), ValueError);
      EXPECT_THROW(b.copy_from_device(a + 1, 8), ValueError);
    }
  }
}

TEST(Alloc, TakesFromTheCurrentAllocator) {
  int calls = 0;
  AllocatorScope scope([&](Device device, size_t bytes) {
    ++calls;
    return allocate(device, bytes);
  });
  const DeviceScope device(cpu(2));
  const MemoryPointer p = alloc(100);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(p.device(), cpu(2));
  EXPECT_GE(p.available(), 100u);
}

TEST(DeviceOfPointer, IsTheHostForHostMemory) {
  int local = 0;
  EXPECT_EQ(device_of_pointer(&local), cpu(0));
}

TEST(DeviceOfPointer, IsTheGpuForItsMemory) {
  CATENA_NEEDS_GPU();
  EXPECT_EQ(device_of_pointer(Memory(16, cuda_device(0)).ptr()), cuda_device(0));
}

}  // namespace
}  // namespace catena
