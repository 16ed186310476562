// The setting that names NVRTC's library, in processes of their own: the library is opened once.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "backends/cuda/jit/compile/nvrtc.h"
#include "catena/core/error.h"

namespace catena::jit {
namespace {

constexpr char kEmptyKernel[] = "extern \"C\" __global__ void nothing() {}";

// Prints the version, or why nothing could be compiled, and ends the process.
[[noreturn]] void compile_with(const char* library) {
  setenv("CATENA_NVRTC", library, 1);
  try {
    const bool made = !compile(kEmptyKernel, 90, "nothing").empty();
    std::fprintf(stderr, "compiled by version %s", nvrtc_version().c_str());
    std::_Exit(made ? 0 : 1);
  } catch (const DeviceError& error) {
    std::fprintf(stderr, "version '%s': %s", nvrtc_version().c_str(), error.what());
    std::_Exit(3);
  }
}

class NvrtcSettingDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(NvrtcSettingDeathTest, NamesTheLibrary) {
  EXPECT_EXIT(compile_with(CATENA_TEST_NVRTC), ::testing::ExitedWithCode(0),
              "compiled by version 1");
}

// As on a machine that has none: no search behind the setting.
TEST_F(NvrtcSettingDeathTest, HidesTheLibrary) {
  EXPECT_EXIT(compile_with("/nowhere/libnvrtc.so"), ::testing::ExitedWithCode(3),
              "version '': nothing: this kernel is neither in the bundle .*NVRTC cannot be used: "
              "/nowhere/libnvrtc.so: cannot open .*CATENA_NVRTC");
}

}  // namespace
}  // namespace catena::jit
