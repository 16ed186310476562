#include "catena/core/device.h"

#include <gtest/gtest.h>

#include <sstream>
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

}  // namespace
}  // namespace catena
