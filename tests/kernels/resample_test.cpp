// Every provider of resampling against dense matrices: all rules, both directions, both layouts,
// all dtypes.
#include "catena/kernels/resample.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/core/device.h"
#include "catena/testing.h"
#include "kernels/resample_case.h"

namespace catena {
namespace {

using testing::ResampleCase;

constexpr double kSmallest = 6e-8;  // of float16

struct Type {
  Dtype dtype;
  double eps;
};
constexpr Type kTypes[] = {{Dtype::kFloat32, 2e-6},
                           {Dtype::kFloat64, 4e-15},
                           {Dtype::kFloat16, 1.1e-3},
                           {Dtype::kBFloat16, 9e-3}};

std::vector<double> numbers(const Array& a) {
  return a.to_cpu().astype(Dtype::kFloat64).to_vector<double>();
}

// The same elements, laid out as the case says. Shifted: behind an address that 16 bytes divide.
Array laid_out(const ResampleCase& c, const Array& a, bool shifted) {
  const Array in_order = c.last ? a.transpose({0, 2, 3, 1}) : a;
  const Array room = zeros({a.size() + 1}, {a.dtype(), a.device()});
  const int64_t first = shifted ? 1 : 0;
  const Array memory = room.at({Slice(first, first + a.size())}).reshape(in_order.shape());
  memory.assign(in_order);
  return c.last ? memory.transpose({0, 3, 1, 2}) : memory;
}

void check(const ResampleCase& c, const Type& type, Device device, const std::string& provider,
           uint64_t seed, bool shifted) {
  const Array drawn = testing::random_array(c.in(), -4, 4, type.dtype, cpu(0), seed);
  const Array x = laid_out(c, drawn.to(device), shifted);
  const Array y = laid_out(c, full(c.out(), 3, {type.dtype, device}), shifted);
  const auto run = kernels::resample.provider(device.type(), provider);
  ASSERT_TRUE(run({&x, &y, c.rows, c.columns, c.divisor, c.adjoint, c.accumulate}));
  const testing::Resampled expected = testing::resampled(c, numbers(drawn));
  const std::vector<double> got = numbers(y);
  for (size_t i = 0; i < got.size(); ++i) {
    const double before = c.accumulate ? 3 : 0;
    ASSERT_NEAR(got[i], expected.y[i] + before, type.eps * (expected.size[i] + before) + kSmallest)
        << i;
  }
}

void for_each_provider(const std::function<void(Device, const std::string&)>& f) {
  for (const DeviceType type : {DeviceType::kCpu, DeviceType::kCuda}) {
    if (device_count(type) == 0) continue;
    const Device device = type == DeviceType::kCpu ? cpu(0) : cuda_device(0);
    for (const ProviderInfo& p : kernels::resample.providers(type)) {
      SCOPED_TRACE(p.name + " on " + to_string(device));
      f(device, p.name);
    }
  }
}

TEST(Resample, RandomCases) {
  for_each_provider([](Device device, const std::string& provider) {
    std::mt19937 random(20261124);
    for (int i = 0; i < 300 && !::testing::Test::HasFatalFailure(); ++i) {
      const ResampleCase c = testing::random_resampling(random);
      SCOPED_TRACE(c.text());
      check(c, kTypes[i % 4], device, provider, uint64_t(i), i % 3 == 0);
    }
  });
}

// Images that several threads or blocks share, with windows that have loops of their own.
TEST(Resample, LargerImages) {
  for_each_provider([](Device device, const std::string& provider) {
    int i = 0;
    for (const int64_t kernel : {2, 3, 5})
      for (const int64_t stride : {1, 2, 3})
        for (const bool last : {false, true})
          for (const bool adjoint : {false, true})
            for (const int64_t channels : {32, 30}) {
              ResampleCase c;
              c.channels = channels, c.last = last, c.adjoint = adjoint;
              const int64_t pad = kernel / 2;
              const auto axis = [&](int64_t in) {
                return AxisMap{AxisRule::kWindow,
                               in,
                               (in + 2 * pad - kernel) / stride + 1,
                               kernel,
                               stride,
                               pad};
              };
              c.rows = axis(37), c.columns = axis(41), c.divisor = double(kernel * kernel);
              SCOPED_TRACE(c.text());
              check(c, kTypes[(i + i / 8) % 4], device, provider, uint64_t(i), i % 3 == 0);
              ++i;
            }
  });
}

// One number that fills a plane, as in the gradient of global pooling, or all but a margin of it.
TEST(Resample, RepeatsANumber) {
  for_each_provider([](Device device, const std::string& provider) {
    int i = 0;
    for (const int64_t width : {3, 7, 16, 21})
      for (const int64_t margin : {0, 1})
        for (const AxisRule rule : {AxisRule::kWindow, AxisRule::kBins})
          for (const bool accumulate : {false, true})
            for (const Type& type : kTypes) {
              if (rule == AxisRule::kBins && margin > 0) continue;
              ResampleCase c;
              c.channels = 37, c.divisor = 10, c.adjoint = true, c.accumulate = accumulate;
              c.rows = {rule, 7, 1, 7, 7};
              c.columns = {rule, width + margin, 1, width, width};
              SCOPED_TRACE(c.text());
              ++i;
              check(c, type, device, provider, uint64_t(i), i % 3 == 0);
              if (::testing::Test::HasFatalFailure()) return;
            }
  });
}

TEST(Resample, SumsAreMadeInTheOrderOfTheSlot) {
  for_each_provider([](Device device, const std::string& provider) {
    const auto run = kernels::resample.provider(device.type(), provider);
    for (const ResampleCase& c : testing::wide_windows()) {
      SCOPED_TRACE(c.text());
      const Array drawn = testing::random_array(c.in(), -4, 4, Dtype::kFloat32, cpu(0), 1);
      const Array x = laid_out(c, drawn.to(device), false);
      const Array y = laid_out(c, zeros(c.out(), {Dtype::kFloat32, device}), false);
      ASSERT_TRUE(run({&x, &y, c.rows, c.columns, c.divisor, c.adjoint}));
      EXPECT_EQ(y.to_cpu().to_vector<float>(),
                testing::summed_in_order(c, drawn.to_vector<float>()));
    }
  });
}

TEST(Resample, DistancesBeyond32Bits) {
  for_each_provider([](Device device, const std::string& provider) {
    for (const ResampleCase& c : testing::far_resamplings()) {
      SCOPED_TRACE(c.text());
      for (const Type& type : kTypes) check(c, type, device, provider, 1, false);
    }
  });
}

// Sums of 16-bit floats are made in float32, in both layouts and directions.
TEST(Resample, KeepsTheDigitsOfSixteenBits) {
  for_each_provider([](Device device, const std::string& provider) {
    for (const bool last : {false, true})
      for (const bool adjoint : {false, true}) {
        ResampleCase c;
        c.images = 1, c.channels = 16, c.last = last, c.adjoint = adjoint;
        c.rows = {AxisRule::kWindow, 1, 1};
        c.columns = {AxisRule::kWindow, 600, 300, 300, 1, 0};
        const Array x = laid_out(c, ones(c.in(), {Dtype::kBFloat16, device}), false);
        const Array y = laid_out(c, zeros(c.out(), {Dtype::kBFloat16, device}), false);
        const auto run = kernels::resample.provider(device.type(), provider);
        ASSERT_TRUE(run({&x, &y, c.rows, c.columns, 1, adjoint}));
        EXPECT_EQ(numbers(y)[adjoint ? 299 : 0], 300);  // ones added in bfloat16 end at 256
      }
  });
}

// The mean of ones is one, and the size of x gives x, bit for bit.
TEST(Resample, IsExactWhereItCanBe) {
  for_each_provider([](Device device, const std::string& provider) {
    const auto run = kernels::resample.provider(device.type(), provider);
    const AxisMap window{AxisRule::kWindow, 9, 3, 3, 3, 0}, bins{AxisRule::kBins, 9, 5};
    for (const AxisMap& m : {window, bins}) {
      const Array x = ones({1, 2, 9, 9}, {Dtype::kFloat32, device});
      const Array y = zeros({1, 2, m.out, m.out}, {Dtype::kFloat32, device});
      ASSERT_TRUE(run({&x, &y, m, m, m.rule == AxisRule::kWindow ? 9.0 : 1.0}));
      for (const double v : numbers(y)) EXPECT_EQ(v, 1);
    }
    for (const AxisRule rule :
         {AxisRule::kBins, AxisRule::kNearest, AxisRule::kAligned, AxisRule::kCentered}) {
      const Array x = testing::random_array({2, 3, 7, 5}, -1, 1, Dtype::kFloat32, device);
      const Array y = zeros_like(x);
      ASSERT_TRUE(run({&x, &y, {rule, 7, 7}, {rule, 5, 5}}));
      EXPECT_EQ(testing::difference(x, y), "");
    }
  });
}

// Elements of weight 0 are not read, so that NaN stays where it is.
TEST(Resample, ReadsNothingWithoutWeight) {
  for_each_provider([](Device device, const std::string& provider) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const Array x = array(std::vector<double>{1, nan, 2}, {1, 1, 1, 3}).to(device);
    const Array y = zeros({1, 1, 1, 5}, {Dtype::kFloat64, device});
    const auto run = kernels::resample.provider(device.type(), provider);
    ASSERT_TRUE(run({&x, &y, {AxisRule::kAligned, 1, 1}, {AxisRule::kAligned, 3, 5}}));
    const std::vector<double> got = numbers(y);
    EXPECT_EQ(got[0], 1);
    EXPECT_EQ(got[4], 2);
    for (const size_t i : {1, 2, 3}) EXPECT_TRUE(std::isnan(got[i])) << i;
  });
}

}  // namespace
}  // namespace catena
