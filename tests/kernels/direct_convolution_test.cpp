// Grouped convolutions with few channels a group on the CPU, which the provider "direct" computes
// without patches, against a plain loop in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "catena/array/creation.h"
#include "catena/core/config.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/kernels/convolution.h"
#include "kernels/convolution_case.h"

namespace catena {
namespace {

using testing::check_convolution;
using testing::ConvolutionCase;
using testing::ConvolutionData;
using testing::Outcome;
using testing::Pass;

constexpr Pass kDirectPasses[] = {Pass::kForward, Pass::kGradX, Pass::kGradW};
constexpr Dtype kDirectDtypes[] = {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16,
                                   Dtype::kBFloat16};

void expect_direct(const ConvolutionCase& c, uint32_t seed) {
  for (const Pass pass : kDirectPasses) {
    std::string why;
    EXPECT_EQ(check_convolution(pass, "direct", cpu(0), c, seed, &why), Outcome::kTaken)
        << "pass " << int(pass) << ": " << why << c.text();
  }
}

// Runs body with each number of threads.
template <class F>
void with_threads(std::initializer_list<int> counts, const F& body) {
  const int before = cpu_threads();
  for (const int count : counts) {
    set_cpu_threads(count);
    body(count);
  }
  set_cpu_threads(before);
}

// Some results see nothing of the image, some elements are seen by nothing, and the last vector of
// channels or of a row is mostly a part.
ConvolutionCase random_direct_case(std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (;;) {
    ConvolutionCase c;
    const int64_t inputs = pick(0, 2) ? 1 : pick(1, 4);
    c.groups = int(pick(2, 37)), c.batch = pick(1, 3);
    c.channels = c.groups * inputs, c.filters = c.groups * (pick(0, 1) ? 1 : pick(1, 3));
    c.height = pick(1, 11), c.width = pick(1, pick(0, 1) ? 11 : 40);
    for (int axis = 0; axis < 2; ++axis) {
      c.window.kernel[axis] = pick(1, pick(0, 1) ? 3 : 7);
      c.window.stride[axis] = pick(0, 1) ? 1 : pick(1, 4);
      c.window.pad[axis] = pick(0, 4);
      c.window.dilation[axis] = pick(0, 1) ? 1 : pick(1, 4);
      c.more[axis] = pick(0, 5) ? 0 : 1;
      c.fewer[axis] = pick(0, 11) ? 0 : 1;
    }
    c.channels_last = pick(0, 1), c.bias = pick(0, 1), c.accumulate = pick(0, 1);
    c.filters_last = c.channels_last && pick(0, 1);
    if (c.possible()) return c;
  }
}

TEST(DirectConvolution, AgreesWithItsDefinition) {
  for (const Dtype dtype : kDirectDtypes) {
    std::mt19937 random(3);
    for (uint32_t i = 0; i < 60; ++i) {
      ConvolutionCase c = random_direct_case(random);
      c.dtype = dtype;
      expect_direct(c, i);
    }
  }
}

// Enough work to be shared out, windows of every kind of loop, and planes of several bands.
std::vector<ConvolutionCase> large_cases() {
  std::vector<ConvolutionCase> cases;
  const auto add = [&](int64_t height, int64_t width, int groups, int64_t inputs, int64_t outputs,
                       Window window) {
    for (const bool last : {false, true}) {
      ConvolutionCase c;
      c.batch = 3, c.groups = groups, c.channels = groups * inputs, c.filters = groups * outputs;
      c.height = height, c.width = width, c.window = window;
      c.channels_last = c.filters_last = last, c.bias = c.accumulate = true;
      cases.push_back(c);
    }
  };
  add(23, 21, 40, 1, 1, {{3, 3}, {1, 1}, {1, 1}, {1, 1}});
  add(23, 21, 24, 1, 3, {{3, 3}, {2, 2}, {1, 1}, {1, 1}});
  add(19, 22, 20, 1, 1, {{5, 7}, {1, 1}, {2, 3}, {1, 1}});
  add(24, 18, 19, 1, 1, {{3, 3}, {1, 1}, {3, 3}, {3, 3}});
  add(17, 19, 6, 4, 3, {{3, 3}, {2, 1}, {1, 1}, {1, 2}});
  add(120, 210, 2, 1, 1, {{3, 3}, {1, 1}, {1, 1}, {1, 1}});
  add(110, 230, 2, 1, 2, {{4, 5}, {3, 2}, {2, 1}, {2, 1}});
  return cases;
}

TEST(DirectConvolution, OfLargeImagesIsSharedOut) {
  with_threads({2}, [](int) {
    uint32_t seed = 1;
    for (ConvolutionCase c : large_cases())
      for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16}) {
        c.dtype = dtype;
        expect_direct(c, ++seed);
      }
  });
}

// Bit for bit, as the deterministic mode requires.
TEST(DirectConvolution, DoesNotDependOnTheNumberOfThreads) {
  for (ConvolutionCase c : large_cases())
    for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat16})
      for (const Pass pass : kDirectPasses) {
        c.dtype = dtype;
        std::vector<double> first;
        with_threads({1, 2, 7}, [&](int threads) {
          const ConvolutionData d(c, cpu(0), 4);
          ASSERT_TRUE(testing::call_provider(pass, "direct", cpu(0), c, d));
          const auto values = testing::values_of(testing::result_of(pass, d).array);
          if (threads == 1) first = values;
          EXPECT_EQ(values, first) << threads << " threads, pass " << int(pass) << c.text();
        });
      }
}

// Without a rule it takes groups of few channels, and leaves others to the products.
TEST(DirectConvolution, TakesGroupsOfFewChannels) {
  ConvolutionCase depthwise;
  depthwise.groups = 4, depthwise.channels = 4, depthwise.filters = 8;
  ConvolutionCase single, wide = depthwise;
  wide.channels = 400, wide.filters = 400;
  std::string why;
  for (const Pass pass : kDirectPasses) {
    EXPECT_EQ(check_convolution(pass, "direct", cpu(0), depthwise, 1, &why), Outcome::kTaken)
        << why;
    EXPECT_EQ(check_convolution(pass, "direct", cpu(0), single, 1, &why), Outcome::kDeclined)
        << why;
    EXPECT_EQ(check_convolution(pass, "direct", cpu(0), wide, 1, &why), Outcome::kDeclined) << why;
  }
  const ProviderScope always("convolution/direct:always");
  EXPECT_EQ(check_convolution(Pass::kForward, "direct", cpu(0), single, 1, &why), Outcome::kTaken)
      << why;
}

// oneDNN leaves those to it for which it has no fast kernel, unless a rule says "always".
TEST(DirectConvolution, IsAskedForWhatOneDnnDoesSlowly) {
  const auto providers = kernels::convolution_grad_w.providers(DeviceType::kCpu);
  if (std::none_of(providers.begin(), providers.end(),
                   [](const ProviderInfo& p) { return p.name == "onednn"; }))
    GTEST_SKIP() << "SKIPPED: no plug-in onednn in this build";
  ConvolutionCase depthwise, multiplied;
  depthwise.groups = depthwise.channels = depthwise.filters = 16;
  multiplied.groups = multiplied.channels = 8, multiplied.filters = 24;
  ConvolutionCase wide = depthwise;
  wide.window = {{5, 5}, {1, 1}, {2, 2}, {1, 1}};
  const auto outcome = [](Pass pass, const ConvolutionCase& c) {
    std::string why;
    return check_convolution(pass, "onednn", cpu(0), c, 2, &why);
  };
  for (const Pass pass : kDirectPasses) {
    EXPECT_EQ(outcome(pass, depthwise), Outcome::kTaken);
    EXPECT_EQ(outcome(pass, multiplied), Outcome::kDeclined);
    const bool is_slow = pass == Pass::kGradW;
    EXPECT_EQ(outcome(pass, wide), is_slow ? Outcome::kDeclined : Outcome::kTaken);
    const ProviderScope always("onednn:always");
    EXPECT_EQ(outcome(pass, multiplied), Outcome::kTaken);
    EXPECT_EQ(outcome(pass, wide), Outcome::kTaken);
  }
  const ProviderScope off("direct:off");
  EXPECT_EQ(outcome(Pass::kGradW, wide), Outcome::kTaken);
}

// The image of a case with NaN in the middle of channel 1 of image 0; x of the forward pass, or gy.
Array with_nan(const Array& a, bool last) {
  const Array copy = testing::in_layout(a.copy(), last);
  copy(0, 1, a.shape()[2] / 2, a.shape()[3] / 2).assign(std::nan(""));
  return copy;
}

// Exactly the results that see a NaN are NaN.
TEST(DirectConvolution, PassesNanOnWhereItIsSeen) {
  ConvolutionCase c;
  c.batch = 2, c.groups = c.channels = c.filters = 18, c.height = 9, c.width = 11;
  for (const bool last : {false, true}) {
    c.channels_last = last;
    const ConvolutionData d(c, cpu(0), 6);
    const auto is_seen = [&](size_t at) {
      const int64_t x = int64_t(at) % 11, y = int64_t(at) / 11 % 9, plane = int64_t(at) / 99;
      return plane == 1 && std::abs(y - 4) <= 1 && std::abs(x - 5) <= 1;
    };
    const Array x = with_nan(d.x.array, last);
    ASSERT_TRUE(kernels::convolution.provider(
        DeviceType::kCpu, "direct")({&x, &d.w.array, nullptr, &d.y.array, c.window, c.groups}));
    const auto y = testing::values_of(d.y.array);
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), is_seen(i)) << last << i;
    ASSERT_TRUE(kernels::convolution_grad_x.provider(
        DeviceType::kCpu, "direct")({&x, &d.w.array, &d.y.array, c.window, c.groups}));
    const auto gx = testing::values_of(d.y.array);
    for (size_t i = 0; i < gx.size(); ++i) EXPECT_EQ(std::isnan(gx[i]), is_seen(i)) << last << i;
    ASSERT_TRUE(kernels::convolution_grad_w.provider(
        DeviceType::kCpu, "direct")({&x, &d.x.array, &d.w.array, c.window, c.groups}));
    const auto gw = testing::values_of(d.w.array);
    for (size_t i = 0; i < gw.size(); ++i) EXPECT_EQ(std::isnan(gw[i]), i / 9 == 1) << last << i;
  }
}

// The first column is infinite, which follows the end of a row in memory: what does not see it is
// finite, the sums of the taps to the right of the first among them.
TEST(DirectConvolution, DoesNotReadBehindARow) {
  ConvolutionCase c;
  c.batch = 1, c.groups = c.channels = c.filters = 3, c.height = 5, c.width = 7;
  c.window = {{1, 3}, {1, 1}, {0, 0}, {1, 1}};
  for (const bool last : {false, true}) {
    c.channels_last = last;
    const ConvolutionData d(c, cpu(0), 6), other(c, cpu(0), 6);
    for (const Array& x : {d.x.array, other.x.array})
      x(Slice(), Slice(), Slice(), 0).assign(std::numeric_limits<double>::infinity());
    ASSERT_TRUE(testing::call_provider(Pass::kGradW, "direct", cpu(0), c, d));
    const auto gw = testing::values_of(d.w.array);
    for (size_t i = 0; i < gw.size(); ++i) EXPECT_EQ(std::isfinite(gw[i]), i % 3 != 0) << last << i;
    ASSERT_TRUE(testing::call_provider(Pass::kForward, "direct", cpu(0), c, other));
    const auto y = testing::values_of(other.y.array);
    const int64_t width = c.out(1);
    for (size_t i = 0; i < y.size(); ++i)
      EXPECT_TRUE(std::isfinite(y[i]) || int64_t(i) % width == 0) << last << i;
  }
}

// Layouts that are neither are made to fit before the kernel is called, and nothing is called for
// an empty batch.
TEST(DirectConvolution, OfViewsAndOfNothing) {
  namespace F = functions;
  const ProviderScope own("onednn:off");
  ConvolutionCase c;
  c.groups = c.channels = c.filters = 5, c.bias = true, c.dtype = Dtype::kFloat64;
  const ConvolutionData d(c, cpu(0), 8);
  const testing::Expected expected = testing::expected_convolution(Pass::kForward, c, d);
  const Shape& s = d.x.array.shape();
  const Array wide = zeros({s[0], s[1], s[2], 2 * s[3]}, {Dtype::kFloat64});
  const Array view = wide(Slice(), Slice(), Slice(), Slice(0, none, 2));
  view.assign(d.x.array);
  const F::ConvolutionOptions options{.pad = 1, .groups = 5};
  for (const Array& x : {view, d.x.array.transpose({3, 2, 1, 0}).copy().transpose({3, 2, 1, 0})})
    EXPECT_EQ(testing::difference(F::convolution_2d(x, d.w.array, d.b.array, options).data(), c,
                                  expected),
              "");
  const Variable none(zeros({0, 5, 8, 7}, {Dtype::kFloat64})), W(d.w.array);
  const Variable y = F::convolution_2d(none, W, options);
  EXPECT_EQ(y.shape(), (Shape{0, 5, 8, 7}));
  y.set_grad(zeros_like(y.data()));
  y.backward();
  for (const double g : testing::values_of(W.grad())) EXPECT_EQ(g, 0);
}

}  // namespace
}  // namespace catena
