// Every distribution against its definition: Kolmogorov-Smirnov, chi-square, moments, correlation
// of neighbours; on every device. Seeds are fixed; the limits are passed by chance once in a
// million.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "array/random_checks.h"
#include "catena/array/creation.h"
#include "catena/array/random.h"
#include "catena/testing.h"

namespace catena {
namespace {

using namespace test;

std::vector<int64_t> histogram(const Array& a, int64_t low, int64_t high) {
  std::vector<int64_t> counts(size_t(high - low));
  for (int64_t v : a.to_vector<int64_t>()) {
    EXPECT_GE(v, low);
    EXPECT_LT(v, high);
    if (v >= low && v < high) ++counts[size_t(v - low)];
  }
  return counts;
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

struct Case {
  const char* name;
  std::function<Array(RandomState&, Dtype)> draw;
  std::function<double(double)> cdf;
  double mean, variance;
};

const Shape kShape{kCount};

const std::vector<Case>& cases() {
  constexpr double euler = 0.57721566490153286, pi = 3.14159265358979324;
  static const std::vector<Case> all = {
      {"uniform", [](RandomState& r, Dtype d) { return r.uniform(kShape, -2, 3, d); },
       [](double x) { return (x + 2) / 5; }, 0.5, 25.0 / 12},
      {"random_sample", [](RandomState& r, Dtype d) { return r.random_sample(kShape, d); },
       [](double x) { return x; }, 0.5, 1.0 / 12},
      {"rand", [](RandomState& r, Dtype d) { return r.rand(kShape, d); },
       [](double x) { return x; }, 0.5, 1.0 / 12},
      {"normal", [](RandomState& r, Dtype d) { return r.normal(kShape, 1, 2, d); },
       [](double x) { return normal_cdf((x - 1) / 2); }, 1, 4},
      {"standard_normal", [](RandomState& r, Dtype d) { return r.standard_normal(kShape, d); },
       normal_cdf, 0, 1},
      {"randn", [](RandomState& r, Dtype d) { return r.randn(kShape, d); }, normal_cdf, 0, 1},
      {"lognormal", [](RandomState& r, Dtype d) { return r.lognormal(kShape, 0.5, 0.25, d); },
       [](double x) { return normal_cdf((std::log(x) - 0.5) / 0.25); }, std::exp(0.5 + 0.03125),
       (std::exp(0.0625) - 1) * std::exp(1 + 0.0625)},
      {"exponential", [](RandomState& r, Dtype d) { return r.exponential(kShape, 2, d); },
       [](double x) { return 1 - std::exp(-x / 2); }, 2, 4},
      {"gumbel", [](RandomState& r, Dtype d) { return r.gumbel(kShape, 1, 2, d); },
       [](double x) { return std::exp(-std::exp(-(x - 1) / 2)); }, 1 + 2 * euler, pi * pi / 6 * 4},
      {"laplace", [](RandomState& r, Dtype d) { return r.laplace(kShape, -1, 2, d); },
       [](double x) {
         return x < -1 ? 0.5 * std::exp((x + 1) / 2) : 1 - 0.5 * std::exp(-(x + 1) / 2);
       },
       -1, 8},
      {"logistic", [](RandomState& r, Dtype d) { return r.logistic(kShape, 1, 2, d); },
       [](double x) { return 1 / (1 + std::exp(-(x - 1) / 2)); }, 1, pi * pi / 3 * 4},
  };
  return all;
}

class RandomStatistics : public ::testing::TestWithParam<Device> {};

TEST_P(RandomStatistics, ContinuousDistributions) {
  const DeviceScope scope(GetParam());
  for (const Case& c : cases()) {
    for (Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64}) {
      SCOPED_TRACE(std::string(c.name) + " " + name(dtype));
      RandomState state(20240117);
      const Array a = c.draw(state, dtype);
      EXPECT_EQ(a.dtype(), dtype);
      EXPECT_EQ(a.device(), GetParam());
      EXPECT_EQ(a.shape(), kShape);
      const std::vector<double> v = a.to_vector<double>();
      EXPECT_LT(kolmogorov_smirnov(v, c.cdf), kKsLimit);
      const Moments m = moments(v);
      EXPECT_NEAR(m.mean, c.mean, 5 * std::sqrt(c.variance / kCount));
      // The variance of the sample variance is (kurtosis - 1) / n of its square.
      EXPECT_NEAR(m.variance, c.variance,
                  5 * c.variance * std::sqrt((m.kurtosis - 1) / double(kCount)));
      for (size_t lag : {1, 2, 3, 4, 16, 64})
        EXPECT_LT(std::abs(correlation(v, lag)), 5 / std::sqrt(double(kCount))) << "lag " << lag;
    }
  }
}

TEST_P(RandomStatistics, HigherMomentsOfTheNormalDistribution) {
  const DeviceScope scope(GetParam());
  for (Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64}) {
    RandomState state(5);
    const std::vector<double> v = state.normal({1 << 19}, 0, 1, dtype).to_vector<double>();
    const Moments m = moments(v);
    const double sigma = 1 / std::sqrt(double(v.size()));
    EXPECT_NEAR(m.skewness, 0, 5 * std::sqrt(6.0) * sigma);
    EXPECT_NEAR(m.kurtosis, 3, 5 * std::sqrt(24.0) * sigma);
    // Both numbers of a Box-Muller pair are normal, and independent also in their squares.
    std::vector<double> squares(v.size());
    for (size_t i = 0; i < v.size(); ++i) squares[i] = v[i] * v[i];
    EXPECT_LT(std::abs(correlation(squares, 1)), 5 * sigma);
  }
}

TEST_P(RandomStatistics, SixteenBitFloats) {
  const DeviceScope scope(GetParam());
  for (Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16}) {
    RandomState state(6);
    const Moments n = moments(state.normal({kCount}, 0, 1, dtype).to_vector<double>());
    EXPECT_NEAR(n.mean, 0, 5 / std::sqrt(double(kCount)));
    EXPECT_NEAR(n.variance, 1, 0.02);
    const Moments e = moments(state.exponential({kCount}, 2, dtype).to_vector<double>());
    EXPECT_NEAR(e.mean, 2, 0.04);
  }
}

TEST_P(RandomStatistics, Integers) {
  const DeviceScope scope(GetParam());
  RandomState state(7);
  EXPECT_LT(chi_square(histogram(state.randint(17, {}, kShape), 0, 17)), kChiLimit);
  EXPECT_LT(chi_square(histogram(state.randint(-5, 6, kShape, Dtype::kInt8), -5, 6)), kChiLimit);
  EXPECT_LT(chi_square(histogram(state.random_integers(6, {}, kShape), 1, 7)), kChiLimit);
  EXPECT_LT(chi_square(histogram(state.random_integers(-3, 3, kShape), -3, 4)), kChiLimit);
  EXPECT_LT(chi_square(histogram(state.interval(10, kShape), 0, 11)), kChiLimit);
  EXPECT_LT(chi_square(histogram(state.integers(kShape, 0, 1000, Dtype::kUInt16), 0, 1000)),
            kChiLimit);
  const std::vector<bool> b = state.bernoulli(kShape, 0.3).to_vector<bool>();
  const int64_t heads = std::count(b.begin(), b.end(), true);
  EXPECT_LT(chi_square({heads, kCount - heads}, {0.3, 0.7}), kChiLimit);
}

TEST_P(RandomStatistics, Choice) {
  const DeviceScope scope(GetParam());
  RandomState state(8);
  EXPECT_LT(chi_square(histogram(state.choice(9, kShape), 0, 9)), kChiLimit);
  const std::vector<double> p = {0.5, 0, 0.125, 0.0625, 0.3125};
  EXPECT_LT(chi_square(histogram(state.choice(5, kShape, true, array(p)), 0, 5), p), kChiLimit);
  // The first of a weighted draw without replacement has the same distribution.
  std::vector<int64_t> first(5), uniform_first(6);
  for (int i = 0; i < 4000; ++i) {
    const auto drawn = state.choice(5, {3}, false, array(p)).to_vector<int64_t>();
    ++first[size_t(drawn[0])];
    EXPECT_TRUE(drawn[0] != drawn[1] && drawn[0] != drawn[2] && drawn[1] != drawn[2]);
    const auto even = state.choice(6, {2}, false).to_vector<int64_t>();
    EXPECT_NE(even[0], even[1]);
    ++uniform_first[size_t(even[0])];
  }
  EXPECT_LT(chi_square(first, p), kChiLimit);
  EXPECT_LT(chi_square(uniform_first), kChiLimit);
}

TEST_P(RandomStatistics, AllOrdersAreEquallyLikely) {
  const DeviceScope scope(GetParam());
  RandomState state(9);
  std::vector<int64_t> permuted(24), shuffled(24);
  const auto rank = [](const std::vector<int64_t>& order) {
    size_t r = 0;
    for (size_t i = 0; i < 4; ++i) {
      size_t smaller = 0;
      for (size_t j = i + 1; j < 4; ++j) smaller += order[j] < order[i];
      r = r * (4 - i) + smaller;
    }
    return r;
  };
  for (int i = 0; i < 6000; ++i) {
    ++permuted[rank(state.permutation(4).to_vector<int64_t>())];
    const Array a = arange(4, GetParam());
    state.shuffle(a);
    ++shuffled[rank(a.to_vector<int64_t>())];
  }
  EXPECT_LT(chi_square(permuted), kChiLimit);
  EXPECT_LT(chi_square(shuffled), kChiLimit);
}

TEST(RandomBytes, AreEquallyLikely) {
  RandomState state(10);
  std::vector<int64_t> counts(256);
  for (uint8_t byte : state.bytes(kCount)) ++counts[byte];
  EXPECT_LT(chi_square(counts), kChiLimit);
}

// The tests above reject what they should.
TEST(RandomStatisticsTests, RejectSmallDeviations) {
  RandomState state(11);
  const std::vector<double> u = state.uniform(kShape).to_vector<double>();
  EXPECT_GT(kolmogorov_smirnov(u, [](double x) { return std::pow(x, 1.03); }), kKsLimit);
  EXPECT_GT(kolmogorov_smirnov(state.normal(kShape, 0, 1.03).to_vector<double>(), normal_cdf),
            kKsLimit);
  std::vector<int64_t> counts(16, kCount / 16);
  counts[3] += 1000;
  EXPECT_GT(chi_square(counts), kChiLimit);
  std::vector<double> smooth(u.size());
  for (size_t i = 1; i < u.size(); ++i) smooth[i] = u[i] + 0.02 * u[i - 1];
  EXPECT_GT(std::abs(correlation(smooth, 1)), 5 / std::sqrt(double(kCount)));
}

INSTANTIATE_TEST_SUITE_P(Devices, RandomStatistics, ::testing::ValuesIn(catena::testing::devices()),
                         [](const auto& info) {
                           std::string text = info.param.name();
                           std::replace(text.begin(), text.end(), ':', '_');
                           return text;
                         });

}  // namespace
}  // namespace catena
