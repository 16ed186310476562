// Tests of random numbers against their distribution: Kolmogorov-Smirnov, chi-square, moments.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

namespace catena::test {

inline constexpr int64_t kCount = 1 << 17;

// sqrt(n) times the largest distance of the empirical distribution from the given one.
inline double kolmogorov_smirnov(std::vector<double> sample,
                                 const std::function<double(double)>& cdf) {
  std::sort(sample.begin(), sample.end());
  const auto n = double(sample.size());
  double largest = 0;
  for (size_t i = 0; i < sample.size(); ++i) {
    const double expected = cdf(sample[i]);
    largest = std::max({largest, double(i + 1) / n - expected, expected - double(i) / n});
  }
  return largest * std::sqrt(n);
}
inline constexpr double kKsLimit = 2.7;  // exceeded with probability 2 exp(-2 x^2) = 1e-6

// How many standard deviations chi-square is above its expectation.
inline double chi_square(const std::vector<int64_t>& counts,
                         const std::vector<double>& probabilities) {
  const auto n = double(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  double sum = 0, cells = -1;
  for (size_t k = 0; k < counts.size(); ++k) {
    const double expected = n * probabilities[k];
    if (expected == 0) {
      EXPECT_EQ(counts[k], 0) << "cell " << k;
      continue;
    }
    sum += (double(counts[k]) - expected) * (double(counts[k]) - expected) / expected;
    ++cells;
  }
  // Wilson & Hilferty: the cube root is nearly normal.
  const double v = 2 / (9 * cells);
  return (std::cbrt(sum / cells) - (1 - v)) / std::sqrt(v);
}
inline double chi_square(const std::vector<int64_t>& counts) {
  return chi_square(counts, std::vector<double>(counts.size(), 1 / double(counts.size())));
}
inline constexpr double kChiLimit = 4.8;

struct Moments {
  double mean = 0, variance = 0, skewness = 0, kurtosis = 0;
};
inline Moments moments(const std::vector<double>& v) {
  const auto n = double(v.size());
  Moments m;
  m.mean = std::accumulate(v.begin(), v.end(), 0.0) / n;
  for (double x : v) {
    const double d = x - m.mean;
    m.variance += d * d / n;
    m.skewness += d * d * d / n;
    m.kurtosis += d * d * d * d / n;
  }
  m.skewness /= std::pow(m.variance, 1.5);
  m.kurtosis /= m.variance * m.variance;
  return m;
}

inline double correlation(const std::vector<double>& v, size_t lag) {
  const Moments m = moments(v);
  double sum = 0;
  for (size_t i = lag; i < v.size(); ++i) sum += (v[i] - m.mean) * (v[i - lag] - m.mean);
  return sum / double(v.size() - lag) / m.variance;
}

}  // namespace catena::test
