// The known bugs of libraries: their providers decline such calls, and the slot computes them
// right all the same.
#include "backends/common/known_bug.h"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>
#include <vector>

#include "catena/core/memory.h"
#include "catena/kernels/convolution.h"
#include "catena/testing_markers.h"
#include "kernels/convolution_case.h"

namespace catena {
namespace {

using testing::call_provider;
using testing::ConvolutionCase;
using testing::ConvolutionData;
using testing::Pass;

bool has_provider(const SlotBase& slot, DeviceType type, std::string_view name) {
  for (const ProviderInfo& p : slot.providers(type))
    if (p.name == name) return true;
  return false;
}

// Leaves large numbers in all memory that the pool of a CPU device hands out next.
void poison_pool() {
  std::vector<Array> blocks;
  for (int64_t bytes = 64; bytes <= int64_t{1} << 22; bytes *= 2)
    for (int copies = 0; copies < 3; ++copies) {
      blocks.push_back(empty({bytes / 4 + copies * bytes / 16}, {Dtype::kFloat32, cpu(0)}));
      blocks.back().fill(1e30);
    }
}

ConvolutionCase case_of(int64_t height, int64_t width, int64_t stride, Dtype dtype) {
  ConvolutionCase c;
  c.dtype = dtype;
  c.batch = 1, c.channels = c.filters = 16, c.height = height, c.width = width;
  c.window = {{3, 3}, {stride, stride}, {1, 1}, {1, 1}};
  return c;
}

// The slot's result of a case, whoever computes it.
std::string wrong_result(Pass pass, const ConvolutionCase& c, Device device) {
  const ConvolutionData d(c, device, 5);
  const Array& result = testing::result_of(pass, d).array;
  if (device.is_cpu()) poison_pool();
  kernels::convolution_grad_w(device, {.x = &d.x.array,
                                       .gy = &d.y.array,
                                       .gW = &result,
                                       .window = c.window,
                                       .groups = c.groups,
                                       .accumulate = c.accumulate});
  return testing::difference(result, c, testing::expected_convolution(pass, c, d));
}

bool takes(const char* provider, Device device, const ConvolutionCase& c) {
  const ConvolutionData d(c, device, 5);
  return call_provider(Pass::kGradW, provider, device, c, d);
}

TEST(KnownBugs, OneDnnLeavesBfloat16WeightGradientsOfNarrowImages) {
  if (!has_provider(kernels::convolution_grad_w, DeviceType::kCpu, "onednn"))
    GTEST_SKIP() << "SKIPPED: no onednn plug-in in this build";
  for (const bool last : {false, true})
    for (const auto& [width, stride] : {std::array<int64_t, 2>{1, 2}, {1, 4}, {2, 3}, {3, 4}}) {
      ConvolutionCase c = case_of(8, width, stride, Dtype::kBFloat16);
      c.channels_last = last;
      EXPECT_EQ(wrong_result(Pass::kGradW, c, cpu(0)), "");
      EXPECT_FALSE(takes("onednn", cpu(0), c)) << c.text();
      c.dtype = Dtype::kFloat32;
      EXPECT_TRUE(takes("onednn", cpu(0), c)) << c.text();
      c.dtype = Dtype::kBFloat16, c.width = stride;
      EXPECT_EQ(wrong_result(Pass::kGradW, c, cpu(0)), "");
    }
}

// With cover_all a window may lie wholly behind the image.
TEST(KnownBugs, OneDnnReadsBehindImagesInBfloat16) {
  if (!has_provider(kernels::convolution, DeviceType::kCpu, "onednn"))
    GTEST_SKIP() << "SKIPPED: no onednn plug-in in this build";
  const ConvolutionCase plain = case_of(8, 5, 1, Dtype::kBFloat16);
  if (!call_provider(Pass::kForward, "onednn", cpu(0), plain, {plain, cpu(0), 5}))
    GTEST_SKIP() << "SKIPPED: oneDNN has no bfloat16 on this processor";
  constexpr Window kWindows[] = {{{1, 1}, {2, 2}, {0, 0}, {1, 1}},
                                 {{3, 3}, {2, 2}, {2, 1}, {1, 1}}};
  for (int i = 0; i < 4; ++i) {
    ConvolutionCase c = case_of(8, 5, 2, Dtype::kBFloat16);
    c.window = kWindows[i / 2];
    c.channels_last = i % 2 != 0;
    const ConvolutionData without(c, cpu(0), 5);
    EXPECT_TRUE(call_provider(Pass::kForward, "onednn", cpu(0), c, without)) << c.text();
    c.more[0] = 1;
    const ConvolutionData d(c, cpu(0), 5);
    EXPECT_FALSE(call_provider(Pass::kForward, "onednn", cpu(0), c, d)) << c.text();
    const Array& y = testing::result_of(Pass::kForward, d).array;
    kernels::convolution(
        cpu(0),
        {.x = &d.x.array, .W = &d.w.array, .y = &y, .window = c.window, .groups = c.groups});
    EXPECT_EQ(testing::difference(y, c, testing::expected_convolution(Pass::kForward, c, d)), "");
  }
}

TEST(KnownBugs, CudnnLeavesUnevenPadding) {
  CATENA_NEEDS_CUDNN();
  const Device gpu = cuda_device(0);
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16}) {
    ConvolutionCase c = case_of(10, 10, 2, dtype);
    EXPECT_TRUE(takes("cudnn", gpu, c)) << c.text();
    c.more[0] = 1;
    EXPECT_EQ(wrong_result(Pass::kGradW, c, gpu), "");
    EXPECT_FALSE(takes("cudnn", gpu, c)) << c.text();
  }
}

TEST(KnownBugs, CudnnLosesDigitsOfLargeWindows) {
  CATENA_NEEDS_CUDNN();
  const Device gpu = cuda_device(0);
  ConvolutionCase c = case_of(28, 28, 1, Dtype::kFloat32);
  EXPECT_TRUE(takes("cudnn", gpu, c)) << c.text();
  c.window = {{5, 5}, {1, 1}, {2, 2}, {1, 1}};
  EXPECT_FALSE(takes("cudnn", gpu, c)) << c.text();
  c.window.stride[0] = c.window.stride[1] = 2;
  EXPECT_TRUE(takes("cudnn", gpu, c)) << c.text();
}

TEST(KnownBugs, TheFirstThatAppliesIsFound) {
  const KnownBug<int> bugs[] = {{"odd", [](const int& n) { return n % 2 != 0; }},
                                {"large", [](const int& n) { return n > 10; }}};
  EXPECT_EQ(known_bug(std::span<const KnownBug<int>>(bugs), 4), nullptr);
  EXPECT_STREQ(known_bug(std::span<const KnownBug<int>>(bugs), 12)->reason, "large");
  EXPECT_STREQ(known_bug(std::span<const KnownBug<int>>(bugs), 13)->reason, "odd");
}

}  // namespace
}  // namespace catena
