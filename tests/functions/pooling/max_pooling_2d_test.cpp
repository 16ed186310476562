// What records and pooling_layers_test.cpp do not say of max pooling: equal elements, other
// providers' states.
#include "catena/functions/pooling/max_pooling_2d.h"

#include <limits>

#include "catena/autograd/backward.h"
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
