// Helpers of the tests that need GPUs: random arrays, comparison with the CPU.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "catena/array/creation.h"
#include "catena/core/backend.h"
#include "catena/kernels/slot.h"
#include "catena/testing_markers.h"

namespace catena::test {

inline std::mt19937_64& generator() {
  static std::mt19937_64 engine(7);
  return engine;
}
inline int64_t between(int64_t low, int64_t high) {
  return low + int64_t(generator()() % uint64_t(high - low + 1));
}

// Whole numbers of [low, high] in any dtype: sums and products of a few of them are exact, so that
// results can be compared bit for bit whatever the order of summation.
inline Array whole_numbers(const Shape& shape, Dtype dtype, int low = -2, int high = 2) {
  if (is_unsigned_int(dtype) || dtype == Dtype::kBool) low = std::max(low, 0);
  std::vector<double> values(static_cast<size_t>(element_count(shape)));
  for (double& v : values) v = double(between(low, high));
  return array(values, shape, cpu()).astype(dtype);
}

inline Array real_numbers(const Shape& shape, Dtype dtype, double low = -2, double high = 2) {
  std::uniform_real_distribution<double> uniform(low, high);
  std::vector<double> values(static_cast<size_t>(element_count(shape)));
  for (double& v : values) v = uniform(generator());
  return array(values, shape, cpu()).astype(dtype);
}

// Element by element, as doubles: |a - b| <= tolerance * (1 + |b|); NaN equals NaN.
inline void expect_close(const Array& actual, const Array& expected, double tolerance,
                         const std::string& what) {
  ASSERT_EQ(actual.shape(), expected.shape()) << what;
  const std::vector<double> a = actual.to_vector<double>(), b = expected.to_vector<double>();
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    ASSERT_TRUE(same || std::abs(a[i] - b[i]) <= tolerance * (1 + std::abs(b[i])))
        << what << ": element " << i << " is " << a[i] << ", expected " << b[i];
  }
}
inline void expect_equal(const Array& actual, const Array& expected, const std::string& what) {
  ASSERT_EQ(actual.dtype(), expected.dtype()) << what;
  expect_close(actual, expected, 0, what);
}

// What rounding to the dtype leaves uncertain.
inline double rounding(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat16: return 2e-3;
    case Dtype::kBFloat16: return 1.6e-2;
    case Dtype::kFloat32: return 1e-5;
    default: return 1e-12;
  }
}

inline const std::vector<Dtype>& float_dtypes() {
  static const std::vector<Dtype> all = {Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat32,
                                         Dtype::kFloat64};
  return all;
}

// A number of repetitions that CATENA_TEST_REPEATS scales (1: as given).
inline int repeats(int count) {
  const char* text = std::getenv("CATENA_TEST_REPEATS");
  return text ? count * std::max(1, std::atoi(text)) : count;
}

}  // namespace catena::test
