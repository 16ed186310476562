#include "catena/core/device.h"

#include <gtest/gtest.h>

#include <thread>

#include "catena/core/error.h"
#include "catena/core/stream.h"

namespace catena {
namespace {

TEST(DeviceName, ReadsAndPrints) {
  EXPECT_EQ(Device("cpu"), cpu(0));
  EXPECT_EQ(Device("cpu:3").name(), "cpu:3");
  EXPECT_EQ(Device("gpu:1"), cuda_device(1));
  for (const char* bad : {"", "tpu", "cpu:", "cpu:x", "cuda:-1", "cuda:64"})
    EXPECT_THROW(Device{bad}, DeviceError) << bad;
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
    EXPECT_NE(std::string(e.what()).find("cuda:0"), std::string::npos) << e.what();
  }
}

TEST(GpuIndex, TooHighNamesTheCount) {
  const int count = device_count(DeviceType::kCuda);
  if (count == 0) GTEST_SKIP() << "no GPU";
  try {
    require_device(cuda_device(count));
    FAIL();
  } catch (const DeviceError& e) {
    EXPECT_NE(std::string(e.what()).find(std::to_string(count)), std::string::npos) << e.what();
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

}  // namespace
}  // namespace catena
