// What the tests of kernels of rows share: numbers in guarded memory, and comparison with doubles.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "device/guarded_memory.h"

namespace catena::testing {

template <class T>
double wide(T v) {
  if constexpr (sizeof(T) > sizeof(float))
    return v;
  else
    return double(float(v));
}

// Random numbers in [low, high), rounded to T; returns what is there.
template <class T>
std::vector<double> fill(const GuardedMemory<T>& m, double low, double high, std::mt19937& random) {
  std::uniform_real_distribution<double> draw(low, high);
  std::vector<double> numbers;
  for (int64_t i = 0; i < m.size(); ++i) {
    m[i] = T(float(draw(random)));
    numbers.push_back(wide(m[i]));
  }
  return numbers;
}

// `tolerance` times 1 + |expected|.
template <class T>
void expect_near(const char* what, const GuardedMemory<T>& found,
                 const std::vector<double>& expected, double tolerance) {
  EXPECT_TRUE(found.is_intact()) << what;
  for (int64_t i = 0; i < found.size(); ++i) {
    const double e = expected[size_t(i)];
    ASSERT_NEAR(wide(found[i]), e, tolerance * (1 + std::abs(e))) << what << " " << i;
  }
}

}  // namespace catena::testing
