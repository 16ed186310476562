// The slots of local response normalization on every device against plain loops in double.
#include "catena/kernels/local_response.h"

#include <gtest/gtest.h>

#include "catena/testing.h"
#include "kernels/normalization_case.h"

namespace catena {
namespace {

using testing::Numbers;

// Calls f(j) for the elements of the window of element i.
template <class F>
void each_neighbour(const ChannelLayout& l, int64_t n, int64_t i, F f) {
  const int64_t c = i / l.inner % l.channels;
  const int64_t last = std::min(c + n / 2, l.channels - 1);
  for (int64_t j = std::max<int64_t>(c - n / 2, 0); j <= last; ++j)
    f(size_t(i + (j - c) * l.inner));
}

void check(Device device, Dtype dtype, const ChannelLayout& layout, const LocalResponse& rule,
           bool aligned) {
  const int64_t size = layout.count() * layout.channels;
  std::mt19937 random(uint32_t(size + rule.n));
  const auto batch = [&] {
    Numbers made = testing::random_numbers(random, {size}, dtype, device, -3, 3);
    if (!aligned) made.array = testing::placed(made.array, false);
    return made;
  };
  const Numbers x = batch(), gy = batch(), y = batch(), gx = batch();
  kernels::local_response(device, {layout, &x.array, &y.array, rule});
  kernels::local_response_grad(device, {layout, &x.array, &gy.array, &gx.array, rule});
  std::vector<double> scale(size_t(size), rule.k), out(scale.size()), gradient(scale.size());
  for (int64_t i = 0; i < size; ++i) {
    each_neighbour(layout, rule.n, i,
                   [&](size_t j) { scale[size_t(i)] += rule.alpha * x.values[j] * x.values[j]; });
    out[size_t(i)] = x.values[size_t(i)] * std::pow(scale[size_t(i)], -rule.beta);
  }
  for (int64_t i = 0; i < size; ++i) {
    double sum = 0;
    each_neighbour(layout, rule.n, i, [&](size_t j) { sum += out[j] * gy.values[j] / scale[j]; });
    const size_t at = size_t(i);
    gradient[at] = gy.values[at] * std::pow(scale[at], -rule.beta) -
                   2 * rule.alpha * rule.beta * x.values[at] * sum;
  }
  testing::NormalizationCase c;
  c.dtype = dtype;
  const std::string what = message(name(dtype), " (", layout.outer, ", ", layout.channels, ", ",
                                   layout.inner, "), n ", rule.n, ", beta ", rule.beta);
  EXPECT_EQ(testing::mismatch("y", y.array, out, testing::batch_tolerance(c)), "")
      << what << " on " << device;
  EXPECT_EQ(testing::mismatch("gx", gx.array, gradient, 2 * testing::batch_tolerance(c)), "")
      << what << " on " << device;
}

TEST(LocalResponse, AgreesWithItsDefinition) {
  const ChannelLayout layouts[] = {{2, 7, 6},    {3, 1, 5},    {1, 5, 1},    {5, 64, 1},
                                   {2, 96, 33},  {2, 33, 784}, {40, 129, 1}, {3, 300, 4},
                                   {1, 4, 9000}, {9000, 4, 1}, {2, 1000, 7}};
  const LocalResponse rules[] = {{5, 2, 1e-4, 0.75}, {5, 1, 0.5, 0.75},    {1, 1, 1, 0.5},
                                 {3, 0.5, 0.2, 1},   {4, 2, 0.3, 0.75},    {17, 1, 0.1, 0.6},
                                 {19, 1, 0.1, 0.75}, {2001, 2, 0.01, 0.75}};
  for (const Device device : testing::devices()) {
    if (device.index() != 0) continue;
    for (const ChannelLayout& layout : layouts)
      for (const LocalResponse& rule : rules) {
        if (layout.count() * layout.channels * std::min(rule.n, layout.channels) > 800000)
          continue;  // the loops of the test
        for (const Dtype dtype :
             {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBFloat16})
          check(device, dtype, layout, rule, dtype == Dtype::kFloat32);
        check(device, Dtype::kFloat32, layout, rule, false);
      }
  }
}

// A window without the large value does not remember it, nor does one with NaN its neighbours'.
TEST(LocalResponse, WindowsAreSummedAnew) {
  for (const Device device : testing::devices())
    for (const ChannelLayout& layout : {ChannelLayout{1, 12, 3}, ChannelLayout{3, 12, 1}}) {
      const auto channel = [&](int64_t i) { return i / layout.inner % 12; };
      std::vector<float> values(36, 1);
      for (int64_t i = 0; i < 36; ++i) {
        if (channel(i) == 0) values[size_t(i)] = 1e18f;
        if (channel(i) == 11) values[size_t(i)] = NAN;
      }
      const Array x = array(values).to(device), y = zeros_like(x);
      kernels::local_response(device, {layout, &x, &y, {3, 1, 1, 0.5}});
      const std::vector<double> got = testing::numbers_of(y);
      for (int64_t i = 0; i < 36; ++i) {
        const double v = got[size_t(i)];
        EXPECT_TRUE(channel(i) < 2 || channel(i) > 9 || std::abs(v - 0.5) < 1e-6) << i << ": " << v;
        EXPECT_EQ(std::isnan(v), channel(i) >= 10) << i;
      }
    }
}

}  // namespace
}  // namespace catena
