// Every provider of max pooling against plain loops: windows of one to three axes, both layouts,
// all dtypes, and what is kept for the gradient.
#include "catena/kernels/pooling.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/core/device.h"
#include "catena/testing.h"
#include "kernels/pooling_case.h"

namespace catena {
namespace {

using testing::PoolingCase;

constexpr Dtype kFloats[] = {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBFloat16};

std::vector<Device> devices() {
  std::vector<Device> all{cpu(0)};
  if (device_count(DeviceType::kCuda) > 0) all.push_back(cuda_device(0));
  return all;
}

std::vector<double> numbers(const Array& a) {
  return a.to_cpu().astype(Dtype::kFloat64).to_vector<double>();
}

// The same elements, laid out as the case says. Shifted: behind an address that 16 bytes divide, so
// that kernels cannot take several at a time.
Array laid_out(const PoolingCase& c, const Array& a, bool shifted = false) {
  Axes last{0}, back{0, a.ndim() - 1};
  for (int k = 2; k < a.ndim(); ++k) last.push_back(k), back.push_back(k - 1);
  last.push_back(1);
  const Array in_order = c.last ? a.transpose(last) : a;
  const Array room = zeros({a.size() + 1}, {a.dtype(), a.device()});
  const int64_t first = shifted ? 1 : 0;
  const Array memory = room.at({Slice(first, first + a.size())}).reshape(in_order.shape());
  memory.assign(in_order);
  return c.last ? memory.transpose(back) : memory;
}

// Whole numbers of a small range, so that windows have equal elements, all sums are exact in 16
// bits, and signs differ.
Array whole_numbers(const PoolingCase& c, const Shape& shape, Dtype dtype, Device device,
                    uint64_t seed, bool shifted) {
  const Array drawn = testing::random_array(shape, -9.99, 9.99, Dtype::kFloat64, cpu(0), seed);
  return laid_out(c, drawn.astype(Dtype::kInt32).astype(dtype).to(device), shifted);
}

struct Run {
  Array x, y, gy, gx, picked;
};

// Forward by one provider, gradient and pick by slots or by the provider itself.
Run run(const PoolingCase& c, Dtype dtype, Device device, const std::string& provider, bool keep,
        uint64_t seed, bool shifted = false) {
  Run r;
  const Shape in = c.shape(c.extents), out = c.shape(c.positions());
  r.x = whole_numbers(c, in, dtype, device, seed, shifted);
  r.gy = whole_numbers(c, out, dtype, device, seed + 1, shifted);
  r.y = laid_out(c, zeros(out, {dtype, device}), shifted);
  r.gx = laid_out(c, full(in, 3, {dtype, device}), shifted);
  r.picked = laid_out(c, zeros(out, {dtype, device}), shifted);
  Kept<MaxPoolingGradCall> kept;
  bool reads = false;
  const auto forward = kernels::max_pooling.provider(device.type(), provider);
  EXPECT_TRUE(forward({&r.x, &r.y, c.window, keep ? &kept : nullptr, keep ? &reads : nullptr}));
  const bool own_state = keep && !reads;
  EXPECT_EQ(own_state, kept.maker() != nullptr);
  const Array* x = own_state ? nullptr : &r.x;
  const Array* y = own_state ? nullptr : &r.y;
  const MaxPoolingGradCall backward{&r.gy, &r.gx, c.window, c.accumulate, &kept, x, y};
  kernels::max_pooling_grad(device, backward);
  kernels::max_pooling_pick(device, {&r.x, &r.picked, c.window, &kept, x});
  return r;
}

void check(const PoolingCase& c, const Run& r) {
  const std::vector<double> x = numbers(r.x), gy = numbers(r.gy);
  const testing::PoolingReference reference(c, x);
  std::vector<double> y, gx(x.size(), c.accumulate ? 3 : 0);
  for (size_t i = 0; i < reference.largest().size(); ++i) {
    const size_t from = size_t(reference.largest()[i]);
    y.push_back(x[from]);
    gx[from] += gy[i];
  }
  EXPECT_EQ(numbers(r.y), y);
  EXPECT_EQ(numbers(r.gx), gx);
  EXPECT_EQ(numbers(r.picked), y);
}

void for_each_provider(const std::function<void(Device, const std::string&)>& f) {
  for (const Device device : devices())
    for (const ProviderInfo& p : kernels::max_pooling.providers(device.type())) {
      SCOPED_TRACE(p.name + " on " + to_string(device));
      f(device, p.name);
    }
}

TEST(Pooling, RandomWindowsOfOneToThreeAxes) {
  for_each_provider([](Device device, const std::string& provider) {
    std::mt19937 random(20261124);
    for (int i = 0; i < 300; ++i) {
      const PoolingCase c = testing::random_pooling(random);
      SCOPED_TRACE(c.text());
      check(c, run(c, kFloats[i % 4], device, provider, i % 3 != 0, uint64_t(100 + 2 * i)));
    }
  });
}

// Windows that have kernels of their own and others, with strides that have and others, on images
// that several blocks or threads share; channels that packs divide or not, and shifted memory.
TEST(Pooling, LargerImages) {
  for_each_provider([](Device device, const std::string& provider) {
    int i = 0;
    for (const int64_t kernel : {2, 3, 5})
      for (const int64_t stride : {1, 2, 3})
        for (const bool last : {false, true})
          for (const int64_t channels : {32, 30})
            for (const bool shifted : {false, true}) {
              PoolingCase c;
              c.images = 3, c.channels = channels, c.last = last;
              c.extents = {27, 31};
              const int64_t pad = kernel > 2 ? 1 : 0;
              c.window = {{kernel, kernel}, {stride, stride}, {pad, pad}, {1, 1}};
              c.cover_all = true, c.accumulate = i % 3 == 0;
              if (!c.is_possible()) c.cover_all = false;
              const Dtype dtype = kFloats[(i + i / 8) % 4];
              SCOPED_TRACE(c.text() + (shifted ? ", shifted " : " ") + name(dtype));
              check(c, run(c, dtype, device, provider, true, uint64_t(7 + i++), shifted));
            }
  });
}

// NaN, infinities and zeros of both signs among the elements, in packs and one by one: the first of
// the largest gives y and takes the gradient.
TEST(Pooling, SpecialNumbersInPacks) {
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               infinity = std::numeric_limits<double>::infinity();
  const double specials[] = {nan, infinity, -infinity, 0.0, -0.0, 1.0};
  for_each_provider([&](Device device, const std::string& provider) {
    for (const Dtype dtype : kFloats)
      for (const bool last : {false, true}) {
        PoolingCase c;
        c.images = 2, c.channels = 16, c.last = last, c.extents = {13, 11};
        c.window = {{3, 3}, {2, 2}, {1, 1}, {1, 1}};
        std::mt19937 random(3);
        std::vector<double> values;
        for (int i = 0; i < 2 * 16 * 13 * 11; ++i)
          values.push_back(random() % 9 ? -double(random() % 3) : specials[random() % 6]);
        const Shape in = c.shape(c.extents), out = c.shape(c.positions());
        const Array x = laid_out(c, array(values, in).astype(dtype).to(device));
        const Array y = laid_out(c, zeros(out, {dtype, device})),
                    gy = laid_out(c, ones(out, {dtype, device})),
                    gx = laid_out(c, zeros(in, {dtype, device}));
        Kept<MaxPoolingGradCall> kept;
        bool reads = false;
        ASSERT_TRUE(kernels::max_pooling.provider(device.type(),
                                                  provider)({&x, &y, c.window, &kept, &reads}));
        kernels::max_pooling_grad(
            device, {&gy, &gx, c.window, false, &kept, reads ? &x : nullptr, reads ? &y : nullptr});
        const testing::PoolingReference reference(c, values);
        const std::vector<double> got = numbers(y);
        std::vector<double> expected(values.size(), 0);
        for (size_t i = 0; i < got.size(); ++i) {
          const size_t from = size_t(reference.largest()[i]);
          ++expected[from];
          EXPECT_TRUE(std::isnan(values[from]) ? std::isnan(got[i]) : got[i] == values[from]);
        }
        EXPECT_EQ(numbers(gx), expected);
      }
  });
}

TEST(Pooling, NanIsTheLargest) {
  for_each_provider([](Device device, const std::string& provider) {
    PoolingCase c;
    c.images = 1, c.channels = 1, c.extents = {2, 4};
    c.window = {{2, 2}, {2, 2}, {0, 0}, {1, 1}};
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> values{1, nan, -5, -7, 9, nan, -6, -5}, weights{2, 3};
    const Array x = array(values, {1, 1, 2, 4}).to(device);
    const Array y = zeros({1, 1, 1, 2}, {Dtype::kFloat32, device}), gx = zeros_like(x);
    const Array gy = array(weights, {1, 1, 1, 2}).to(device);
    Kept<MaxPoolingGradCall> kept;
    bool reads = false;
    ASSERT_TRUE(
        kernels::max_pooling.provider(device.type(), provider)({&x, &y, c.window, &kept, &reads}));
    const std::vector<double> got = numbers(y);
    EXPECT_TRUE(std::isnan(got[0]));
    EXPECT_EQ(got[1], -5);
    kernels::max_pooling_grad(
        device, {&gy, &gx, c.window, false, &kept, reads ? &x : nullptr, reads ? &y : nullptr});
    // The first NaN, and the first of two equal elements.
    EXPECT_EQ(numbers(gx), (std::vector<double>{0, 2, 3, 0, 0, 0, 0, 0}));
  });
}

// Gradients of 16-bit floats are summed in float32.
TEST(Pooling, OverlappingGradientsKeepTheirDigits) {
  for_each_provider([](Device device, const std::string& provider) {
    PoolingCase c;
    c.images = 1, c.channels = 1, c.extents = {1, 300};
    c.window = {{1, 300}, {1, 1}, {0, 299}, {1, 1}};
    Array x = zeros({1, 1, 1, 300}, Dtype::kBFloat16);
    x(0, 0, 0, 150).fill(1);
    const Array on_device = x.to(device), y = zeros({1, 1, 1, 599}, {Dtype::kBFloat16, device});
    const Array gy = full({1, 1, 1, 599}, 1, {Dtype::kBFloat16, device}),
                gx = zeros_like(on_device);
    Kept<MaxPoolingGradCall> kept;
    bool reads = false;
    ASSERT_TRUE(kernels::max_pooling.provider(device.type(),
                                              provider)({&on_device, &y, c.window, &kept, &reads}));
    kernels::max_pooling_grad(device, {&gy, &gx, c.window, false, &kept,
                                       reads ? &on_device : nullptr, reads ? &y : nullptr});
    EXPECT_EQ(numbers(gx)[150], 300);  // ones that are added in bfloat16 end at 256
  });
}

}  // namespace
}  // namespace catena
