// Every distribution against its exact distribution function, on every device; choices and orders;
// parameters by element; arguments. Seeds are fixed; the limits are passed by chance once in a
// million.
#include <gtest/gtest.h>

#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <limits>

#include "array/devices.h"
#include "array/random_checks.h"
#include "catena/array/math.h"
#include "catena/array/random.h"
#include "catena/array/reduction.h"

namespace catena {
namespace {

using namespace test;
using boost::math::gamma_p;
using boost::math::gamma_q;
using boost::math::ibeta;
using boost::math::ibetac;
using Cdf = std::function<double(double)>;

constexpr int64_t kDraws = 1 << 15;
const Shape kShape{kDraws};

class DistributionFunctions : public OnDevice {};

void expect_moments(const V& v, double mean, double variance) {
  const Moments m = moments(v);
  const auto n = double(v.size());
  EXPECT_NEAR(m.mean, mean, 5 * std::sqrt(variance / n));
  EXPECT_NEAR(m.variance, variance, 5 * variance * std::sqrt((m.kurtosis - 1) / n));
}

void expect_uncorrelated(const V& v) {
  for (size_t lag : {1, 2, 3, 4, 64})
    EXPECT_LT(std::abs(correlation(v, lag)), 5 / std::sqrt(double(v.size()))) << "lag " << lag;
}

struct Case {
  const char* name;
  std::function<Array(RandomState&, Dtype)> draw;
  Cdf cdf;
  double mean, variance;  // NaN where there is none
};

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

constexpr double kEuler = 0.57721566490153286;
double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double students_t(double x, double df) {
  const double tail = 0.5 * ibeta(df / 2, 0.5, df / (df + x * x));
  return x > 0 ? 1 - tail : tail;
}

const std::vector<Case>& cases() {
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
       [](double x) { return std::exp(-std::exp(-(x - 1) / 2)); }, 1 + 2 * kEuler,
       M_PI * M_PI / 6 * 4},
      {"laplace", [](RandomState& r, Dtype d) { return r.laplace(kShape, -1, 2, d); },
       [](double x) {
         return x < -1 ? 0.5 * std::exp((x + 1) / 2) : 1 - 0.5 * std::exp(-(x + 1) / 2);
       },
       -1, 8},
      {"logistic", [](RandomState& r, Dtype d) { return r.logistic(kShape, 1, 2, d); },
       [](double x) { return 1 / (1 + std::exp(-(x - 1) / 2)); }, 1, M_PI * M_PI / 3 * 4},
      {"gamma 2.5", [](RandomState& r, Dtype d) { return r.gamma(kShape, 2.5, 3, d); },
       [](double x) { return gamma_p(2.5, x / 3); }, 7.5, 22.5},
      {"gamma 1", [](RandomState& r, Dtype d) { return r.standard_gamma(kShape, 1, d); },
       [](double x) { return gamma_p(1.0, x); }, 1, 1},
      {"gamma 0.4", [](RandomState& r, Dtype d) { return r.standard_gamma(kShape, 0.4, d); },
       [](double x) { return gamma_p(0.4, x); }, 0.4, 0.4},
      {"gamma 1000", [](RandomState& r, Dtype d) { return r.gamma(kShape, 1000, 1, d); },
       [](double x) { return gamma_p(1000.0, x); }, 1000, 1000},
      {"beta", [](RandomState& r, Dtype d) { return r.beta(kShape, 2, 5, d); },
       [](double x) { return ibeta(2.0, 5.0, x); }, 2.0 / 7, 10.0 / (49 * 8)},
      {"beta below 1", [](RandomState& r, Dtype d) { return r.beta(kShape, 0.5, 0.7, d); },
       [](double x) { return ibeta(0.5, 0.7, std::min(x, 1.0)); }, 0.5 / 1.2, 0.35 / (1.44 * 2.2)},
      {"chisquare", [](RandomState& r, Dtype d) { return r.chisquare(kShape, 3, d); },
       [](double x) { return gamma_p(1.5, x / 2); }, 3, 6},
      {"f", [](RandomState& r, Dtype d) { return r.f(kShape, 4, 30, d); },
       [](double x) { return ibeta(2.0, 15.0, 4 * x / (4 * x + 30)); }, 30.0 / 28,
       2.0 * 900 * 32 / (4.0 * 784 * 26)},
      {"standard_t", [](RandomState& r, Dtype d) { return r.standard_t(kShape, 12, d); },
       [](double x) { return students_t(x, 12); }, 0, 1.2},
      {"rayleigh", [](RandomState& r, Dtype d) { return r.rayleigh(kShape, 2, d); },
       [](double x) { return -std::expm1(-x * x / 8); }, 2 * std::sqrt(M_PI / 2), (4 - M_PI) * 2},
      {"weibull", [](RandomState& r, Dtype d) { return r.weibull(kShape, 2, d); },
       [](double x) { return -std::expm1(-x * x); }, std::sqrt(M_PI) / 2, 1 - M_PI / 4},
      {"pareto", [](RandomState& r, Dtype d) { return r.pareto(kShape, 6, d); },
       [](double x) { return 1 - std::pow(1 + x, -6); }, 0.2, 6.0 / (25 * 4)},
      {"power", [](RandomState& r, Dtype d) { return r.power(kShape, 3, d); },
       [](double x) { return x * x * x; }, 0.75, 3.0 / 80},
      {"standard_cauchy", [](RandomState& r, Dtype d) { return r.standard_cauchy(kShape, d); },
       [](double x) { return 0.5 + std::atan(x) / M_PI; }, kNone, kNone},
      {"triangular", [](RandomState& r, Dtype d) { return r.triangular(kShape, -1, 0, 3, d); },
       [](double x) { return x < 0 ? (x + 1) * (x + 1) / 4 : 1 - (3 - x) * (3 - x) / 12; }, 2.0 / 3,
       13.0 / 18},
  };
  return all;
}

TEST_P(DistributionFunctions, Continuous) {
  const DeviceScope scope(GetParam());
  for (const Case& c : cases()) {
    for (Dtype dtype : {Dtype::kFloat32, Dtype::kFloat64}) {
      SCOPED_TRACE(std::string(c.name) + " " + name(dtype));
      RandomState state(31);
      const Array a = c.draw(state, dtype);
      EXPECT_EQ(a.dtype(), dtype);
      EXPECT_EQ(a.device(), GetParam());
      EXPECT_EQ(a.shape(), kShape);
      const V v = values(a);
      EXPECT_LT(kolmogorov_smirnov(v, c.cdf), kKsLimit);
      if (std::isnan(c.mean)) continue;
      expect_moments(v, c.mean, c.variance);
      expect_uncorrelated(v);
    }
  }
}

// Cells of about half a standard deviation around the mean, compared with the distribution
// function of the counts.
double counts_off(const V& v, const Cdf& cdf, double mean, double deviation) {
  std::vector<double> ends;
  for (double z = -3; z <= 3; z += 0.5) {
    const double end = std::floor(mean + z * deviation);
    if (end >= 0 && (ends.empty() || end > ends.back())) ends.push_back(end);
  }
  std::vector<int64_t> counts(ends.size() + 1);
  for (double x : v) {
    EXPECT_EQ(x, std::floor(x));
    ++counts[size_t(std::lower_bound(ends.begin(), ends.end(), x) - ends.begin())];
  }
  std::vector<double> p;
  double before = 0;
  for (double end : ends) {
    p.push_back(cdf(end) - before);
    before = cdf(end);
  }
  p.push_back(1 - before);
  return chi_square(counts, p);
}

Cdf poisson_cdf(double rate) {
  return [rate](double k) { return gamma_q(k + 1, rate); };
}

void expect_poisson(const V& v, double rate) {
  SCOPED_TRACE("rate " + std::to_string(rate));
  EXPECT_LT(counts_off(v, poisson_cdf(rate), rate, std::sqrt(rate)), kChiLimit);
  expect_moments(v, rate, rate);
  expect_uncorrelated(v);
}

TEST_P(DistributionFunctions, PoissonOfOneRate) {
  const DeviceScope scope(GetParam());
  RandomState state(32);
  for (double rate : {0.2, 3.5, 11.0, 120.0, 20000.0, 1e6, 3e6, 1e9}) {
    const Array a = state.poisson(kShape, rate);
    EXPECT_EQ(a.dtype(), Dtype::kInt64);
    expect_poisson(values(a), rate);
  }
  EXPECT_EQ(values(state.poisson({3}, 0)), V({0, 0, 0}));
}

TEST_P(DistributionFunctions, PoissonOfManyRates) {
  const V rates = {0.2, 3.5, 9.9, 10, 13, 60, 1000, 1e6, 1e12};
  const auto kinds = int64_t(rates.size());
  RandomState state(33);
  const Array a = state.poisson({kDraws, kinds}, numbers(rates));
  EXPECT_EQ(a.device(), GetParam());
  EXPECT_EQ(a.dtype(), Dtype::kInt64);
  for (int64_t k = 0; k < kinds; ++k) {
    const V v = values(a(Slice(), k));
    if (rates[size_t(k)] < 1e9)
      expect_poisson(v, rates[size_t(k)]);
    else  // where the distribution function itself is that of a normal distribution
      expect_moments(v, rates[size_t(k)], rates[size_t(k)]);
  }
  EXPECT_EQ(values(state.poisson({2, 2}, numbers({0, 0}))), V({0, 0, 0, 0}));
}

TEST_P(DistributionFunctions, Binomial) {
  const DeviceScope scope(GetParam());
  RandomState state(34);
  for (const auto& [n, p] : std::vector<std::pair<int64_t, double>>{
           {1, 0.3}, {10, 0.5}, {40, 0.02}, {1000, 0.9}, {1000000, 0.25}}) {
    SCOPED_TRACE(std::to_string(n));
    const V v = values(state.binomial(kShape, n, p));
    const double mean = double(n) * p, variance = mean * (1 - p);
    const Cdf cdf = [n = double(n), p = p](double k) {
      return k >= n ? 1.0 : ibetac(k + 1, n - k, p);
    };
    EXPECT_LT(counts_off(v, cdf, mean, std::sqrt(variance)), kChiLimit);
    expect_moments(v, mean, variance);
    expect_uncorrelated(v);
  }
  EXPECT_EQ(values(state.binomial({2}, 5, 0)), V({0, 0}));
  EXPECT_EQ(values(state.binomial({2}, 5, 1)), V({5, 5}));
  EXPECT_EQ(values(state.binomial({2}, 0, 0.5)), V({0, 0}));
}

TEST_P(DistributionFunctions, RatiosOfVerySmallGammaNumbers) {
  const DeviceScope scope(GetParam());
  RandomState state(34);
  EXPECT_FALSE(any(isnan(state.f({10000}, 0.002, 0.002))).item<bool>());
}

TEST_P(DistributionFunctions, Geometric) {
  const DeviceScope scope(GetParam());
  RandomState state(35);
  for (double p : {0.9, 0.3, 0.001}) {
    SCOPED_TRACE(p);
    const V v = values(state.geometric(kShape, p));
    EXPECT_GE(*std::min_element(v.begin(), v.end()), 1);
    const Cdf cdf = [p](double k) { return -std::expm1(k * std::log1p(-p)); };
    EXPECT_LT(counts_off(v, cdf, 1 / p, std::sqrt(1 - p) / p), kChiLimit);
    expect_moments(v, 1 / p, (1 - p) / (p * p));
  }
  EXPECT_EQ(values(state.geometric({2}, 1)), V({1, 1}));
  EXPECT_EQ(state.geometric({3, 2}, numbers({0.5, 0.25})).device(), GetParam());
}

TEST_P(DistributionFunctions, NegativeBinomial) {
  const DeviceScope scope(GetParam());
  RandomState state(36);
  for (const auto& [n, p] :
       std::vector<std::pair<double, double>>{{1, 0.5}, {4.5, 0.2}, {80, 0.1}}) {
    SCOPED_TRACE(n);
    const V v = values(state.negative_binomial(kShape, n, p));
    const Cdf cdf = [n = n, p = p](double k) { return ibeta(n, k + 1, p); };
    const double mean = n * (1 - p) / p, variance = mean / p;
    EXPECT_LT(counts_off(v, cdf, mean, std::sqrt(variance)), kChiLimit);
    expect_moments(v, mean, variance);
  }
  EXPECT_EQ(values(state.negative_binomial({2}, 3, 1)), V({0, 0}));
}

TEST_P(DistributionFunctions, MultinomialAndDirichlet) {
  const DeviceScope scope(GetParam());
  RandomState state(37);
  const V p = {0.5, 0, 0.2, 0.3};
  const Array counts = state.multinomial({1000, 2}, 30, array(p));
  EXPECT_EQ(counts.shape(), Shape({1000, 2, 4}));
  EXPECT_EQ(counts.dtype(), Dtype::kInt64);
  EXPECT_TRUE(all(sum(counts, -1) == 30).item<bool>());
  EXPECT_LT(chi_square(sum(counts, {0, 1}).to_vector<int64_t>(), p), kChiLimit);
  expect_moments(values(counts(ellipsis, 2)), 6, 30 * 0.2 * 0.8);
  // More draws than are made at once.
  const auto many = state.multinomial({}, (int64_t{1} << 22) + 1000, array(p));
  EXPECT_LT(chi_square(many.to_vector<int64_t>(), p), kChiLimit);
  EXPECT_EQ(values(state.multinomial({}, 0, array(p))), V({0, 0, 0, 0}));
  EXPECT_THROW(state.multinomial({2}, 0, array({0.5, 0.6})), ValueError);
  EXPECT_THROW(state.multinomial({0}, 3, array({0.5, 0.6})), ValueError);

  const Array shares = state.dirichlet({kDraws}, array({0.5, 2., 3.}));
  EXPECT_EQ(shares.shape(), Shape({kDraws, 3}));
  EXPECT_LT(amax(absolute(sum(shares, -1) - 1)).item<double>(), 1e-15);
  EXPECT_LT(kolmogorov_smirnov(values(shares(Slice(), 0)),
                               [](double x) { return ibeta(0.5, 5.0, std::min(x, 1.0)); }),
            kKsLimit);
  EXPECT_LT(kolmogorov_smirnov(values(shares(Slice(), 2)),
                               [](double x) { return ibeta(3.0, 2.5, std::min(x, 1.0)); }),
            kKsLimit);
}

TEST_P(DistributionFunctions, ParametersByElement) {
  const V ks = {0.05, 0.9, 1, 7, 300};
  RandomState state(38);
  const Array a = state.gamma({kDraws, 5}, numbers(ks), 2);
  const Array b = state.beta({kDraws, 5}, numbers(ks), 3);
  for (int64_t column = 0; column < 5; ++column) {
    const double k = ks[size_t(column)];
    SCOPED_TRACE(k);
    EXPECT_LT(
        kolmogorov_smirnov(values(a(Slice(), column)), [k](double x) { return gamma_p(k, x / 2); }),
        kKsLimit);
    EXPECT_LT(kolmogorov_smirnov(values(b(Slice(), column)),
                                 [k](double x) { return ibeta(k, 3.0, std::min(x, 1.0)); }),
              kKsLimit);
  }
  EXPECT_EQ(values(state.gamma({3}, numbers({0, 0, 0}), 2)), V({0, 0, 0}));
  EXPECT_EQ(values(state.gamma({2}, 3, 0)), V({0, 0}));
}

TEST_P(DistributionFunctions, VerySmallShapesOfBetaStayNumbers) {
  const DeviceScope scope(GetParam());
  RandomState state(39);
  const V v = values(state.beta({4000}, 1e-4, 1e-4));
  // Nearly all the weight is at 0 and 1, half at each.
  const auto ones = std::count_if(v.begin(), v.end(), [](double x) { return x > 0.5; });
  EXPECT_NEAR(double(ones), 2000, 5 * std::sqrt(1000));
  for (double x : v) EXPECT_TRUE(x >= 0 && x <= 1) << x;
}

std::vector<int64_t> counts_of(const Array& a, int64_t low, int64_t high) {
  std::vector<int64_t> counts(size_t(high - low));
  for (int64_t v : a.to_vector<int64_t>()) {
    EXPECT_GE(v, low);
    EXPECT_LT(v, high);
    if (v >= low && v < high) ++counts[size_t(v - low)];
  }
  return counts;
}

TEST_P(DistributionFunctions, SixteenBitFloats) {
  const DeviceScope scope(GetParam());
  for (Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16}) {
    RandomState state(6);
    const Moments n = moments(state.normal(kShape, 0, 1, dtype).to_vector<double>());
    EXPECT_NEAR(n.mean, 0, 5 / std::sqrt(double(kDraws)));
    EXPECT_NEAR(n.variance, 1, 0.02);
    const Moments e = moments(state.exponential(kShape, 2, dtype).to_vector<double>());
    EXPECT_NEAR(e.mean, 2, 0.04);
  }
}

TEST_P(DistributionFunctions, Integers) {
  const DeviceScope scope(GetParam());
  RandomState state(7);
  EXPECT_LT(chi_square(counts_of(state.randint(17, {}, kShape), 0, 17)), kChiLimit);
  EXPECT_LT(chi_square(counts_of(state.randint(-5, 6, kShape, Dtype::kInt8), -5, 6)), kChiLimit);
  EXPECT_LT(chi_square(counts_of(state.random_integers(6, {}, kShape), 1, 7)), kChiLimit);
  EXPECT_LT(chi_square(counts_of(state.random_integers(-3, 3, kShape), -3, 4)), kChiLimit);
  EXPECT_LT(chi_square(counts_of(state.interval(10, kShape), 0, 11)), kChiLimit);
  EXPECT_LT(chi_square(counts_of(state.integers(kShape, 0, 1000, Dtype::kUInt16), 0, 1000)),
            kChiLimit);
  const std::vector<bool> b = state.bernoulli(kShape, 0.3).to_vector<bool>();
  const int64_t heads = std::count(b.begin(), b.end(), true);
  EXPECT_LT(chi_square({heads, kDraws - heads}, {0.3, 0.7}), kChiLimit);
}

TEST_P(DistributionFunctions, Choice) {
  const DeviceScope scope(GetParam());
  RandomState state(8);
  EXPECT_LT(chi_square(counts_of(state.choice(9, kShape), 0, 9)), kChiLimit);
  const std::vector<double> p = {0.5, 0, 0.125, 0.0625, 0.3125};
  EXPECT_LT(chi_square(counts_of(state.choice(5, kShape, true, array(p)), 0, 5), p), kChiLimit);
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

TEST_P(DistributionFunctions, AllOrdersAreEquallyLikely) {
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
  for (uint8_t byte : state.bytes(kDraws)) ++counts[byte];
  EXPECT_LT(chi_square(counts), kChiLimit);
}

// The checks above reject parameters that are off by a few parts in a hundred.
TEST_P(DistributionFunctions, ChecksRejectSmallDeviations) {
  const DeviceScope scope(GetParam());
  RandomState state(43);
  EXPECT_GT(kolmogorov_smirnov(values(state.gamma(kShape, 2.5)),
                               [](double x) { return gamma_p(2.6, x); }),
            kKsLimit);
  EXPECT_GT(kolmogorov_smirnov(values(state.beta(kShape, 2, 5)),
                               [](double x) { return ibeta(2.0, 5.2, x); }),
            kKsLimit);
  for (double rate : {3.5, 60.0, 3e6}) {
    const V v = values(state.poisson(kShape, rate));
    const double other = rate + 0.05 * std::sqrt(rate);
    EXPECT_GT(counts_off(v, poisson_cdf(other), other, std::sqrt(other)), kChiLimit) << rate;
  }
}

TEST_P(DistributionFunctions, EmptyShapes) {
  const DeviceScope scope(GetParam());
  RandomState state(40);
  EXPECT_EQ(state.gamma({0, 3}, 2).shape(), Shape({0, 3}));
  EXPECT_EQ(state.poisson({0}, numbers({4})).shape(), Shape({0}));
  EXPECT_EQ(state.poisson({0}, 4).dtype(), Dtype::kInt64);
  EXPECT_EQ(state.dirichlet({0}, numbers({1, 2})).shape(), Shape({0, 2}));
  EXPECT_EQ(state.multinomial({0}, 4, numbers({0.5, 0.5})).shape(), Shape({0, 2}));
  EXPECT_EQ(state.gamma({}, 2).ndim(), 0);
  EXPECT_EQ(state.poisson({}, 2).ndim(), 0);
}

TEST_P(DistributionFunctions, ChoiceWithANumberAsSize) {
  const DeviceScope scope(GetParam());
  RandomState state(41);
  const Array three = state.choice(5, 3, false);
  EXPECT_EQ(three.shape(), Shape({3}));
  const auto positions = three.to_vector<int64_t>();
  EXPECT_TRUE(positions[0] != positions[1] && positions[0] != positions[2] &&
              positions[1] != positions[2]);
  EXPECT_EQ(values(state.choice(3, 2, true, array({0., 1., 0.}))), V({1, 1}));
  EXPECT_EQ(values(state.choice(numbers({7, 7}), 3)), V({7, 7, 7}));
  EXPECT_EQ(values(random::choice(1, 2)), V({0, 0}));
  EXPECT_EQ(random::choice(numbers({5}), 2).device(), GetParam());
}

TEST_P(DistributionFunctions, WrongArguments) {
  RandomState state(42);
  const Array bad = numbers({1, -1});
  const auto says = [](const std::string& text, const char* who, const char* what) {
    expect_contains(text, {who, what});
  };
  says(error_of<Error>([&] { state.gamma({2}, bad); }), "gamma: ", "-1");
  says(error_of<Error>([&] { state.gamma({2}, kNone); }), "gamma: ", "nan");
  says(error_of<Error>([&] { state.gamma({2}, 1, bad); }), "gamma: ", "scale");
  says(error_of<Error>([&] { state.beta({2}, 0, 1); }), "beta: ", "a above 0");
  says(error_of<Error>([&] { state.chisquare({2}, 0); }), "chisquare: ", "freedom");
  says(error_of<Error>([&] { state.poisson({2}, bad); }), "poisson: ", "-1");
  says(error_of<Error>([&] { state.poisson({3}, bad); }), "poisson: ", "(2,)");
  says(error_of<Error>([&] { state.poisson({2}, 1e16); }), "poisson: ", "1e15");
  says(error_of<Error>([&] { state.binomial({2}, 5, 1.5); }), "binomial: ", "1.5");
  says(error_of<Error>([&] { state.binomial({2}, int64_t{1} << 40, 0.5); }), "binomial: ", "1e10");
  says(error_of<Error>([&] { state.geometric({2}, 0); }), "geometric: ", "probabilities");
  says(error_of<Error>([&] { state.multinomial({2}, -1, bad); }), "multinomial: ", "-1");
  says(error_of<Error>([&] { state.dirichlet({2}, counting({2, 2})); }), "dirichlet: ", "1-d");
  says(error_of<Error>([&] { state.gamma({2}, 1, 1, Dtype::kInt32); }), "gamma: ", "int32");
  says(error_of<Error>([&] { state.triangular({2}, 1, 0, 2); }), "triangular: ", "1, 0, 2");
  says(error_of<Error>([&] { state.weibull({2}, 0); }), "weibull: ", "above 0");
}

CATENA_ON_DEVICES(DistributionFunctions);

}  // namespace
}  // namespace catena
