// Products of floats on the CPU, on every instruction set that this processor has: small integers,
// so that every order of additions gives the same bits, against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "backends/cpu/loops/tables.h"
#include "backends/cpu/matmul/gemm.h"
#include "catena/core/config.h"

namespace catena {
namespace {

struct Layout {
  bool a, b, c;  // whether each lies by columns
};

template <class T>
struct Problem {
  int64_t m, n, k, gap;
  Layout by_columns;
  std::vector<T> a, b, c;

  // Rows (or columns) lie `gap` elements further apart than they need.
  static std::vector<T> values(std::mt19937& random, int64_t rows, int64_t columns, bool by_columns,
                               int64_t gap) {
    const int64_t lines = by_columns ? columns : rows, length = by_columns ? rows : columns;
    std::vector<T> result(size_t(lines * (length + gap)));
    for (T& x : result) x = T(int(random() % 17) - 8);
    return result;
  }
  Problem(std::mt19937& random, int64_t m, int64_t n, int64_t k, Layout by_columns, int64_t gap)
      : m(m),
        n(n),
        k(k),
        gap(gap),
        by_columns(by_columns),
        a(values(random, m, k, by_columns.a, gap)),
        b(values(random, k, n, by_columns.b, gap)),
        c(values(random, m, n, by_columns.c, gap)) {}

  host::Gemm<T> call(T* result, bool accumulate) const {
    const auto row = [&](bool columns, int64_t width) { return columns ? 1 : width + gap; };
    const auto column = [&](bool columns, int64_t height) { return columns ? height + gap : 1; };
    return {m,
            n,
            k,
            a.data(),
            row(by_columns.a, k),
            column(by_columns.a, m),
            b.data(),
            row(by_columns.b, n),
            column(by_columns.b, k),
            result,
            row(by_columns.c, n),
            column(by_columns.c, m),
            accumulate};
  }
  std::vector<T> expected(bool accumulate) const {
    std::vector<T> result = c;
    const host::Gemm<T> g = call(result.data(), accumulate);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        T& out = g.c[i * g.c_row + j * g.c_column];
        T sum = accumulate ? out : T(0);
        for (int64_t l = 0; l < k; ++l)
          sum += g.a[i * g.a_row + l * g.a_column] * g.b[l * g.b_row + j * g.b_column];
        out = sum;
      }
    return result;  // with what lies in the gaps, which nobody may write
  }
};

template <class T>
void check(std::mt19937& random, int64_t m, int64_t n, int64_t k) {
  const auto bits = random();
  const bool accumulate = bits & 8;
  const Problem<T> p(random, m, n, k, {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0},
                     bits & 16 ? 0 : 3);
  std::vector<T> result = p.c;
  host::gemm(p.call(result.data(), accumulate));
  ASSERT_EQ(result, p.expected(accumulate)) << m << " x " << n << " x " << k << ", layouts "
                                            << (bits & 7) << ", accumulate " << accumulate;
}

TEST(CpuProduct, EveryShapeAroundTheTiles) {
  std::mt19937 random(1);
  for (int64_t m : {1, 2, 3, 5, 13, 14, 15, 29})
    for (int64_t n : {1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 65})
      for (int64_t k : {1, 2, 3, 4, 5, 16, 33}) {
        check<float>(random, m, n, k);
        check<double>(random, m, n, k);
      }
}

TEST(CpuProduct, EveryShapeAroundTheBlocks) {
  std::mt19937 random(2);
  for (const auto& [m, n, k] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{{449, 33, 100},
                                                                                  {450, 70, 385},
                                                                                  {30, 2049, 20},
                                                                                  {20, 2100, 390},
                                                                                  {900, 40, 161},
                                                                                  {64, 64, 1000},
                                                                                  {100, 10, 1000},
                                                                                  {37, 11, 2500},
                                                                                  {12, 41, 300},
                                                                                  {11, 12, 4100},
                                                                                  {300, 70, 14},
                                                                                  {600, 505, 10},
                                                                                  {4100, 70, 64},
                                                                                  {3, 1700, 500},
                                                                                  {1, 3000, 700},
                                                                                  {3000, 1, 700}})
    for (int repeat = 0; repeat < 6; ++repeat) {
      check<float>(random, m, n, k);
      check<double>(random, m, n, k);
    }
}

// A running sum of float32 would be off by a hundredth.
TEST(CpuProduct, LongSumsKeepTheirDigits) {
  constexpr int64_t kTerms = 1 << 20, kColumns = 3;
  const std::vector<float> ones(kTerms * kColumns, 1.0f);
  for (const int64_t rows : {1, 2, 5}) {
    for (const bool by_lines : {true, false}) {
      const std::vector<float> a(size_t(rows * kTerms), 0.1f);
      std::vector<float> c(size_t(rows * kColumns), 1.0f);
      host::gemm(host::Gemm<float>{rows, kColumns, kTerms, a.data(), kTerms, 1, ones.data(),
                                   by_lines ? kColumns : 1, by_lines ? 1 : kTerms, c.data(),
                                   kColumns, 1, true});
      for (const float sum : c)
        EXPECT_NEAR(sum, 1 + double(0.1f) * kTerms, 100) << rows << " rows, " << by_lines;
    }
  }
}

TEST(CpuProduct, TheNumberOfThreadsDoesNotChangeABit) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (const auto& [m, n, k] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{
           {333, 517, 401}, {1333, 10, 1000}, {11, 1333, 1000}, {1333, 517, 9}}) {
    Problem<float> p(random, m, n, k, {false, true, false}, 0);
    for (float& x : p.a) x = uniform(random);
    for (float& x : p.b) x = uniform(random);
    const int before = cpu_threads();
    std::vector<float> alone = p.c;
    set_cpu_threads(1);
    host::gemm(p.call(alone.data(), false));
    for (int threads : {2, 3, 8}) {
      std::vector<float> together = p.c;
      set_cpu_threads(threads);
      host::gemm(p.call(together.data(), false));
      EXPECT_EQ(alone, together) << threads << " threads, " << m << " x " << n << " x " << k;
    }
    set_cpu_threads(before);
  }
}

TEST(CpuProduct, LevelOfTheKernels) {
  const std::vector<int> all{2, 3, 4};
  EXPECT_EQ(host::level_of_kernels(4, nullptr, all), 4);
  EXPECT_EQ(host::level_of_kernels(4, "v3", all), 3);
  EXPECT_EQ(host::level_of_kernels(4, "v1", all), 2);
  EXPECT_EQ(host::level_of_kernels(3, "v4", all), 3) << "never more than the processor has";
  EXPECT_EQ(host::level_of_kernels(2, nullptr, all), 2);
  EXPECT_EQ(host::level_of_kernels(4, "nonsense", all), 4);
  EXPECT_EQ(host::level_of_kernels(4, "v2", {4}), 4) << "what the build has not is not chosen";
  EXPECT_EQ(host::level_of_kernels(3, nullptr, {4}), 0) << "built for another machine";
}

}  // namespace
}  // namespace catena
