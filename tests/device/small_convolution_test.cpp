// The CUDA kernels of small convolutions, run on threads of the host, against plain loops in
// double.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backends/cuda/convolution/small.h"

namespace catena {
namespace {

using gpu::SmallConvolution;

const gpu::Launch kLaunch{nullptr, 1, 0, false};

// images, channels, filters, height, width, extents of y, window, padding. Of each width that is
// compiled: rows that end in a pack and within one, padding, positions left out and added, slices
// of filters, of channels and of images, parts of rows, and planes in several pieces.
const SmallConvolution kCases[] = {
    {3, 2, 5, 6, 7, {4, 5}, {3, 3}, {0, 0}},     {2, 3, 9, 8, 8, {4, 4}, {5, 5}, {0, 0}},
    {2, 1, 6, 9, 12, {5, 8}, {5, 5}, {0, 0}},    {2, 2, 4, 6, 9, {6, 9}, {7, 7}, {3, 3}},
    {1, 2, 3, 5, 6, {5, 7}, {2, 3}, {1, 1}},     {3, 1, 1, 4, 5, {5, 4}, {1, 4}, {0, 2}},
    {2, 2, 3, 7, 6, {3, 2}, {3, 2}, {2, 0}},     {1, 50, 5, 4, 5, {4, 5}, {3, 3}, {1, 1}},
    {1, 3, 2, 3, 2, {7, 9}, {3, 6}, {3, 5}},     {1, 20, 20, 15, 28, {15, 28}, {3, 3}, {1, 1}},
    {1, 7, 9, 30, 30, {30, 30}, {3, 3}, {1, 1}},
};

std::string text_of(const SmallConvolution& z) {
  std::string text;
  for (const int number : {z.images, z.channels, z.filters, z.height, z.width, z.out[0], z.out[1],
                           z.kernel[0], z.kernel[1], z.pad[0], z.pad[1]})
    text += std::to_string(number) + ' ';
  return text;
}

std::vector<float> random_floats(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = draw(random);
  return values;
}

struct Data {
  explicit Data(const SmallConvolution& z)
      : x(random_floats(z.images * z.channels * z.height * z.width, 1)),
        w(random_floats(z.filters * z.channels * z.kernel[0] * z.kernel[1], 2)),
        y(random_floats(z.images * z.filters * z.out[0] * z.out[1], 3)),
        b(random_floats(z.filters, 4)) {}
  std::vector<float> x, w, y, b;
};

// Calls body(index in x, in W, in y) for each product of a convolution.
template <class Body>
void for_each_product(const SmallConvolution& z, Body body) {
  for (int n = 0; n < z.images; ++n)
    for (int o = 0; o < z.filters; ++o)
      for (int c = 0; c < z.channels; ++c)
        for (int i = 0; i < z.kernel[0]; ++i)
          for (int j = 0; j < z.kernel[1]; ++j)
            for (int p = 0; p < z.out[0]; ++p)
              for (int q = 0; q < z.out[1]; ++q) {
                const int h = p + i - z.pad[0], w = q + j - z.pad[1];
                if (h < 0 || h >= z.height || w < 0 || w >= z.width) continue;
                body(size_t(((n * z.channels + c) * z.height + h) * z.width + w),
                     size_t(((o * z.channels + c) * z.kernel[0] + i) * z.kernel[1] + j),
                     size_t(((n * z.filters + o) * z.out[0] + p) * z.out[1] + q));
              }
}

std::string difference(const std::vector<float>& got, const std::vector<double>& expected) {
  for (size_t i = 0; i < got.size(); ++i)
    if (!(std::abs(got[i] - expected[i]) <= 2e-5))
      return "element " + std::to_string(i) + " is " + std::to_string(got[i]) + ", expected " +
             std::to_string(expected[i]);
  return "";
}

std::vector<double> zeros_or(const std::vector<float>& old, bool accumulate) {
  return accumulate ? std::vector<double>(old.begin(), old.end())
                    : std::vector<double>(old.size(), 0.0);
}

TEST(SmallConvolutionKernels, ComputeTheGradientOfW) {
  for (const SmallConvolution& z : kCases)
    for (const bool accumulate : {false, true}) {
      const Data d(z);
      std::vector<double> expected = zeros_or(d.w, accumulate);
      for_each_product(
          z, [&](size_t x, size_t w, size_t y) { expected[w] += double(d.x[x]) * double(d.y[y]); });
      std::vector<float> gW = d.w;
      const gpu::SmallGradWPlan plan = gpu::plan_small_grad_w(z, accumulate ? 1 : 2);
      std::vector<float> partials(size_t(plan.partial_sums()) * gW.size(),
                                  std::numeric_limits<float>::quiet_NaN());
      gpu::launch_small_grad_w(
          {d.x.data(), d.y.data(), gW.data(), partials.data(), z, plan, accumulate}, kLaunch);
      EXPECT_EQ(difference(gW, expected), "") << text_of(z) << accumulate;
    }
}

TEST(SmallConvolutionKernels, ComputeTheForwardPass) {
  for (const SmallConvolution& z : kCases)
    for (const bool bias : {false, true}) {
      const Data d(z);
      std::vector<double> expected(d.y.size(), 0.0);
      const size_t positions = size_t(z.out[0] * z.out[1]);
      for (size_t i = 0; bias && i < expected.size(); ++i)
        expected[i] = d.b[i / positions % size_t(z.filters)];
      for_each_product(
          z, [&](size_t x, size_t w, size_t y) { expected[y] += double(d.x[x]) * double(d.w[w]); });
      std::vector<float> y = d.y;
      const gpu::SmallSums sums = gpu::forward_sums(z);
      gpu::launch_small_sums({d.x.data(), d.w.data(), bias ? d.b.data() : nullptr, y.data(), sums,
                              gpu::plan_small_sums(sums, bias ? 1 : 132), false},
                             kLaunch);
      EXPECT_EQ(difference(y, expected), "") << text_of(z) << bias;
    }
}

TEST(SmallConvolutionKernels, ComputeTheGradientOfX) {
  for (const SmallConvolution& z : kCases)
    for (const bool accumulate : {false, true}) {
      const Data d(z);
      std::vector<double> expected = zeros_or(d.x, accumulate);
      for_each_product(
          z, [&](size_t x, size_t w, size_t y) { expected[x] += double(d.y[y]) * double(d.w[w]); });
      std::vector<float> gx = d.x;
      const gpu::SmallSums sums = gpu::grad_x_sums(z);
      gpu::launch_small_sums({d.y.data(), d.w.data(), nullptr, gx.data(), sums,
                              gpu::plan_small_sums(sums, accumulate ? 1 : 132), accumulate},
                             kLaunch);
      EXPECT_EQ(difference(gx, expected), "") << text_of(z) << accumulate;
    }
}

// An infinity of x must not reach results whose window does not cover it, though threads read it.
TEST(SmallConvolutionKernels, KeepInfinitiesWhereTheyBelong) {
  const SmallConvolution z{1, 1, 1, 1, 8, {1, 5}, {1, 4}, {0, 0}};
  std::vector<float> x(8, 1.f), w(4, 1.f), y(5), gy(5, 1.f), gW(4), partials(64);
  x[7] = std::numeric_limits<float>::infinity();
  const gpu::SmallSums sums = gpu::forward_sums(z);
  gpu::launch_small_sums(
      {x.data(), w.data(), nullptr, y.data(), sums, gpu::plan_small_sums(sums, 1), false}, kLaunch);
  EXPECT_EQ(y, (std::vector<float>{4, 4, 4, 4, x[7]}));
  const gpu::SmallGradWPlan plan = gpu::plan_small_grad_w(z, 1);
  gpu::launch_small_grad_w({x.data(), gy.data(), gW.data(), partials.data(), z, plan, false},
                           kLaunch);
  EXPECT_EQ(gW, (std::vector<float>{5, 5, 5, x[7]}));
}

// The largest problems of the providers need no more shared memory and threads than every GPU has.
TEST(SmallConvolutionPlans, FitEveryGpu) {
  constexpr int64_t kBytes = 48 << 10;
  constexpr int kMost = gpu::kLargestSmallImage;
  for (int window = 1; window <= gpu::kWidestSmallWindow; ++window)
    for (const int channels : {1, 20, 128})
      for (const int extent : {1, 13, kMost})
        for (const int multiprocessors : {1, 132}) {
          const SmallConvolution z{64,     channels,         channels,         extent,
                                   extent, {extent, extent}, {window, window}, {0, 0}};
          const gpu::SmallGradWPlan plan = gpu::plan_small_grad_w(z, multiprocessors);
          EXPECT_LE(plan.shared_bytes(z), kBytes) << text_of(z);
          EXPECT_LE(plan.threads(z), 256) << text_of(z);
          EXPECT_GE(plan.rows * plan.row_parts, extent) << text_of(z);
          for (const gpu::SmallSums& sums : {gpu::forward_sums(z), gpu::grad_x_sums(z)}) {
            ASSERT_TRUE(gpu::has_small_planes(sums)) << text_of(z);
            const gpu::SmallSumsPlan other = gpu::plan_small_sums(sums, multiprocessors);
            EXPECT_LE(other.shared_bytes(sums), kBytes) << text_of(z);
            EXPECT_LE(other.threads(sums), 256) << text_of(z);
          }
        }
}

}  // namespace
}  // namespace catena
