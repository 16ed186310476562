#include "catena/core/device.h"

#include <gtest/gtest.h>

#include <sstream>
#include <thread>

#include "catena/core/error.h"
#include "catena/core/memory.h"
#include "catena/core/stream.h"

namespace catena {
namespace {

TEST(DeviceName, ReadsAndPrints) {
  EXPECT_EQ(Device("cpu"), cpu(0));
  EXPECT_EQ(Device("cpu:3").name(), "cpu:3");
  EXPECT_EQ(Device("gpu:1"), cuda_device(1));
  for (const char* bad : {"", "tpu", "cpu:", "cpu:x", "cuda:-1", "cuda:64"})
    EXPECT_THROW(Device{bad}, DeviceError) << bad;
  std::ostringstream stream;
  stream << cpu(3) << ' ' << cuda_device(1);
  EXPECT_EQ(stream.str(), "cpu:3 cuda:1");
}

TEST(DeviceScope, IsPerThreadAndRestores) {
  {
    DeviceScope scope(cpu(2));
    EXPECT_EQ(current_device(), cpu(2));
    std::thread([] { EXPECT_EQ(current_device(), cpu(0)); }).join();
  }
  EXPECT_EQ(current_device(), cpu(0));
}

TEST(MissingGpu, IsOneClearError) {
  if (device_count(DeviceType::kCuda) > 0) GTEST_SKIP() << "this machine has a GPU";
  EXPECT_FALSE(unavailable_reason(DeviceType::kCuda).empty());
  try {
    set_current_device("cuda:0");
    FAIL();
  } catch (const DeviceError& e) {
    const std::string text = e.what();
    EXPECT_EQ(text.find("cuda:0 cannot be used: " + unavailable_reason(DeviceType::kCuda)), 0u)
        << text;
    EXPECT_TRUE(
        text.ends_with("; catena-run --check prints what this machine and this build offer"))
        << text;
  }
}

TEST(GpuIndex, TooHighNamesTheCount) {
  const int count = device_count(DeviceType::kCuda);
  if (count == 0) GTEST_SKIP() << "no GPU";
  try {
    require_device(cuda_device(count));
    FAIL();
  } catch (const DeviceError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find(std::to_string(count)), std::string::npos) << text;
    EXPECT_NE(text.find("catena-run --check"), std::string::npos) << text;
  }
}

TEST(CpuStream, IsAlwaysDone) {
  const Stream s = Stream::create(cpu(1));
  EXPECT_TRUE(s.query());
  const Event e = s.record();
  EXPECT_TRUE(e.query());
  StreamScope scope(s);
  EXPECT_EQ(current_stream(cpu(1)), s);
  EXPECT_FALSE(current_stream(cpu(0)) == s);
}

TEST(DeviceQueries, AnswerForTheHost) {
  const DeviceProperties host = device_properties(cpu(3));
  EXPECT_FALSE(host.model.empty());
  EXPECT_EQ(host.compute_capability, "");
  EXPECT_EQ(cpu(3).compute_capability(), "");
  EXPECT_GE(host.multiprocessors, 1);
  const MemoryInfo memory = memory_info(cpu(0));
  EXPECT_GT(memory.total, size_t{64} << 20);
  EXPECT_LE(memory.free, memory.total);
  EXPECT_EQ(host.total_memory, memory.total);
  EXPECT_TRUE(can_access_peer(cpu(0), cpu(1)));
  EXPECT_EQ(cpu(5).id(), 5);
  cpu(5).synchronize();
}

TEST(DeviceQueries, RefuseMissingDevices) {
  const int count = device_count(DeviceType::kCuda);
  EXPECT_THROW(device_properties(cuda_device(count)), DeviceError);
  EXPECT_THROW(memory_info(cuda_device(count)), DeviceError);
  EXPECT_THROW(can_access_peer(cpu(0), cuda_device(count)), DeviceError);
  EXPECT_THROW(cuda_device(count).use(), DeviceError);
  EXPECT_THROW(cuda_device(count).synchronize(), DeviceError);
  EXPECT_THROW(synchronize(cuda_device(count)), DeviceError);
  EXPECT_THROW(allocate_unpooled(cuda_device(count), 16), DeviceError);
}

TEST(DeviceUse, LastsUntilTheNext) {
  const Device before = current_device();
  cpu(4).use();
  EXPECT_EQ(current_device(), cpu(4));
  before.use();
  EXPECT_EQ(current_device(), before);
}

}  // namespace
}  // namespace catena
