// What records do not say of max pooling: what a call keeps, memory order, other providers' states.
#include "catena/functions/pooling/max_pooling_2d.h"

#include <gtest/gtest.h>

#include <limits>

#include "catena/autograd/backward.h"
#include "catena/core/graph.h"
#include "catena/functions/connection/convolution_2d.h"
#include "catena/kernels/pooling.h"
#include "catena/testing_markers.h"
#include "functions/functions_test_util.h"

namespace catena {
namespace {

class MaxPooling2D : public OnDevice {};

Variable pooled(const Variable& x) {
  return F::max_pooling_2d(x, 3, {.stride = F::Extent2D(2), .pad = 1});
}

TEST_P(MaxPooling2D, KeepsChannelsLast) {
  const Array images = draw({2, 8, 7, 6}, -1, 1);
  const Variable x(images), last(F::channels_last(images));
  const Variable y = pooled(x), y_last = pooled(last);
  EXPECT_TRUE(y.data().is_contiguous());
  EXPECT_EQ(y_last.data().order(), last.data().order());
  EXPECT_EQ(testing::difference(y.data(), y_last.data()), "");
  const Array gy = draw(y.shape(), -1, 1, 2);
  y.set_grad(gy);
  y.backward();
  y_last.set_grad(F::channels_last(gy));
  y_last.backward();
  EXPECT_EQ(x.grad().order(), images.order());
  EXPECT_EQ(last.grad().order(), last.data().order());
  EXPECT_EQ(testing::difference(x.grad(), last.grad()), "");
}

// Images that nobody else holds are gone before the backward pass; what it needs are places.
TEST_P(MaxPooling2D, LetsTheImagesGo) {
  const Variable x(draw({2, 8, 7, 6}, -1, 1));
  const auto pool_and_spoil = [&](bool spoil) {
    const Variable y = pooled(x);
    if (spoil) x.data().fill(0);  // would be an error if the node had saved it
    y.set_grad(draw(y.shape(), -1, 1, 2));
    y.backward();
  };
  pool_and_spoil(false);
  const Array expected = x.grad().copy();
  x.set_grad(Array());
  pool_and_spoil(true);
  EXPECT_EQ(testing::difference(x.grad(), expected), "");
}

// One place of each part takes the gradient: the first of equal elements, row by row, or the first
// NaN.
TEST_P(MaxPooling2D, AdaptivePartsTakeTheFirstOfEqualElementsAndNaN) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const Variable x(
      array({{1.0, 2.0, 2.0, 0.0, 0.0}, {2.0, 0.0, 1.0, 5.0, nan}, {0.0, 5.0, 3.0, nan, 7.0}})
          .reshape({1, 1, 3, 5})
          .to(device()));
  // Rows [0, 2) and [1, 3), columns [0, 3) and [2, 5).
  const Variable y = F::adaptive_max_pooling_2d(x, 2);
  EXPECT_EQ(
      testing::difference(y.data(), array({2.0, nan, 5.0, nan}).reshape({1, 1, 2, 2}).to(device())),
      "");
  y.set_grad(array({1.0, 10.0, 100.0, 1000.0}).reshape({1, 1, 2, 2}).to(device()));
  y.backward();
  const Array expected = zeros({1, 1, 3, 5});
  const auto at = [&](int64_t row, int64_t column, double value) {
    expected.data<double>()[row * 5 + column] = value;
  };
  at(0, 1, 1), at(2, 1, 100), at(1, 4, 1010);
  EXPECT_EQ(testing::difference(x.grad(), expected.to(device())), "");
}

// A provider that keeps no places: its gradient reads x and y, and is that of the built-in one.
int g_reading_gradients = 0;
bool reading_grad(const MaxPoolingGradCall& call) {
  ++g_reading_gradients;
  EXPECT_TRUE(call.x != nullptr && call.y != nullptr);
  const auto own = kernels::max_pooling_grad.provider(DeviceType::kCpu, "cpu");
  return own({call.gy, call.gx, call.window, call.accumulate, nullptr, call.x, call.y});
}
bool reading_pooling(const MaxPoolingCall& call) {
  kernels::max_pooling.provider(DeviceType::kCpu, "cpu")({call.x, call.y, call.window});
  if (call.kept == nullptr) return true;
  call.kept->keep<&reading_grad>(nullptr);
  *call.reads_arrays = true;
  return true;
}
void add_reading_provider() {
  static const bool done = [] {
    kernels::max_pooling.provide(DeviceType::kCpu, "reading", &reading_pooling, -1);
    kernels::max_pooling_grad.provide(DeviceType::kCpu, "reading", &reading_grad, -1);
    return true;
  }();
  EXPECT_TRUE(done);
}

// The gradient of a pooling whose forward and backward calls see these rules, and how often the
// reading provider was asked for it.
std::pair<Array, int> gradient_under(const char* forward, const char* backward, const Variable& x) {
  Variable y;
  {
    const ProviderScope rules(forward);
    y = pooled(x);
  }
  x.set_grad(Array());
  y.set_grad(random_array(y.shape(), -1, 1, y.dtype(), y.device(), 2));
  g_reading_gradients = 0;
  const ProviderScope rules(backward);
  y.backward();
  return {x.grad(), g_reading_gradients};
}

TEST(MaxPooling2DProviders, GradientsGoToTheMaker) {
  add_reading_provider();
  const Variable x(random_array({2, 8, 7, 6}, -1, 1));
  const auto [own, own_asked] =
      gradient_under("max_pooling/cpu:only", "max_pooling_grad/reading:only", x);
  EXPECT_EQ(own_asked, 0);
  const auto [other, other_asked] =
      gradient_under("max_pooling/reading:only", "max_pooling_grad/reading:off", x);
  EXPECT_EQ(other_asked, 1);
  EXPECT_EQ(testing::difference(own, other), "");
}

// What a provider reads in the backward call is saved, so that it is noticed when it is
// overwritten.
TEST(MaxPooling2DProviders, WhatTheMakerReadsIsSaved) {
  add_reading_provider();
  const ProviderScope rules("max_pooling/reading:only");
  const Variable x(random_array({2, 8, 7, 6}, -1, 1));
  const Variable y = pooled(x);
  x.data().fill(0);
  y.set_grad(ones_like(y.data()));
  EXPECT_THROW(y.backward(), GradientError);
}

TEST(MaxPooling2DProviders, SecondGradientsNeedNoStateOfTheBuiltInOnes) {
  add_reading_provider();
  const ProviderScope rules("max_pooling/reading:only");
  expect_gradients([](const Variable& v) { return pooled(v); }, random_array({2, 3, 5, 4}, -1, 1));
}

// Calls that no backward call can follow ask for no state.
bool g_kept_asked = false;
bool observe(const MaxPoolingCall& call) {
  g_kept_asked = call.kept != nullptr || call.reads_arrays != nullptr;
  return false;
}
TEST(MaxPooling2DProviders, UnrecordedCallsKeepNothing) {
  static const bool done = [] {
    kernels::max_pooling.provide(DeviceType::kCpu, "observer", &observe, 1000);
    return true;
  }();
  EXPECT_TRUE(done);
  const Array images = random_array({2, 8, 7, 6}, -1, 1);
  pooled(Variable(images));
  EXPECT_TRUE(g_kept_asked);
  pooled(Variable(images, Volatile::on));
  EXPECT_FALSE(g_kept_asked);
  pooled(Variable::constant(images));
  EXPECT_FALSE(g_kept_asked);
  const NoBackprop off;
  pooled(Variable(images));
  EXPECT_FALSE(g_kept_asked);
}

// One step forward and backward as a graph; replays see the images that are there by then.
TEST(MaxPooling2DOnGpu, IsCaptured) {
  CATENA_NEEDS_GPU();
  const Device gpu = cuda_device(0);
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16}) {
    const auto images = [&](uint64_t seed) {
      return F::channels_last(random_array({3, 16, 21, 19}, -1, 1, dtype, gpu, seed));
    };
    const Variable x(images(1));
    const Array gy = random_array({3, 16, 11, 10}, -1, 1, dtype, gpu, 2);
    Array y, gx;
    const auto step = [&] {
      const Variable result = F::max_pooling_2d(x, 3, {.stride = F::Extent2D(2), .pad = 1});
      x.set_grad(Array());
      result.set_grad(gy);
      result.backward();
      y = result.data(), gx = x.grad();
    };
    cuda::Graph graph = cuda::Graph::capture(gpu, step);
    const Array captured_y = y, captured_gx = gx;
    for (const uint64_t seed : {3, 4}) {
      x.data().assign(images(seed));
      graph.launch();
      const Array replayed_y = captured_y.copy(), replayed_gx = captured_gx.copy();
      step();
      EXPECT_EQ(testing::difference(replayed_y, y), "");
      EXPECT_EQ(testing::difference(replayed_gx, gx), "");
    }
  }
}

// Equal bits on both devices, in every dtype, also where elements are equal: sums are made in the
// same order.
TEST(MaxPooling2DOnGpu, HasTheBitsOfTheCpu) {
  CATENA_NEEDS_GPU();
  const auto run = [](Device device, Dtype dtype, bool last, int64_t kernel, int64_t stride,
                      int64_t channels) {
    const Array drawn = random_array({2, channels, 37, 41}, -4, 4, Dtype::kFloat64, cpu(), 1);
    const Array coarse = (drawn * 4.0).astype(Dtype::kInt32).astype(dtype).to(device);
    const Variable x(last ? F::channels_last(coarse) : coarse);
    const Variable y = F::max_pooling_2d(
        x, kernel,
        {.stride = F::Extent2D(stride), .pad = (kernel - 1) / 2, .cover_all = stride < 3});
    y.set_grad(random_array(y.shape(), -1, 1, Dtype::kFloat64, cpu(), 2).astype(dtype).to(device));
    y.backward();
    return Arrays{y.data().to_cpu(), x.grad().to_cpu()};
  };
  for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBFloat16})
    for (const bool last : {false, true})
      for (const auto& [kernel, stride] :
           {std::pair{2, 1}, {2, 2}, {3, 2}, {3, 1}, {3, 3}, {5, 3}, {17, 4}})
        for (const int64_t channels : {24, 5}) {
          const Arrays a = run(cpu(), dtype, last, kernel, stride, channels),
                       b = run(cuda_device(0), dtype, last, kernel, stride, channels);
          for (size_t i = 0; i < a.size(); ++i)
            EXPECT_EQ(testing::difference(a[i], b[i]), "")
                << dtype << ' ' << kernel << ' ' << stride << ' ' << channels
                << (last ? " channels last" : "");
        }
}

CATENA_ON_DEVICES(MaxPooling2D);

}  // namespace
}  // namespace catena
