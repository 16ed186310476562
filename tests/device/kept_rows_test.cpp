// The CUDA kernels of rows that shared memory holds, run on threads of the host, against plain
// loops in double. Blocks have 128 threads there at most.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "backends/cuda/normalization/row_normalization.h"
#include "device/guarded_memory.h"

namespace catena {
namespace {

using gpu::Float;

template <class T>
using Memory = testing::GuardedMemory<T>;

constexpr double kEps = 1e-3;

struct Case {
  int64_t samples = 2, channels = 4, area = 256, groups = 2;
  bool gamma = true, beta = true, g_gamma = true, g_beta = true, accumulate = false;
  bool centred = true;
  int offset = 0;  // elements that x begins behind a multiple of 16 bytes
  double mean = 0;
  int multiprocessors = 1;
  int shared_memory = 100 << 10;

  std::string text() const {
    std::ostringstream s;
    s << "(" << samples << ", " << channels << ", " << area << ") in " << groups << " groups"
      << (gamma ? " gamma" : "") << (beta ? " beta" : "") << (g_gamma ? " g_gamma" : "")
      << (g_beta ? " g_beta" : "") << (accumulate ? " accumulate" : "")
      << (centred ? "" : " not centred") << ", offset " << offset << ", mean " << mean << ", "
      << multiprocessors << " multiprocessors, " << shared_memory << " bytes";
    return s.str();
  }
};

template <class T>
double wide(T v) {
  if constexpr (sizeof(T) > sizeof(float))
    return v;
  else
    return double(float(v));
}

template <class T>
std::vector<double> fill(const Memory<T>& m, double low, double high, std::mt19937& random) {
  std::uniform_real_distribution<double> draw(low, high);
  std::vector<double> numbers;
  for (int64_t i = 0; i < m.size(); ++i) {
    m[i] = T(float(draw(random)));
    numbers.push_back(wide(m[i]));
  }
  return numbers;
}

template <class T>
void expect_near(const char* what, const Memory<T>& found, const std::vector<double>& expected,
                 double tolerance) {
  EXPECT_TRUE(found.is_intact()) << what;
  for (int64_t i = 0; i < found.size(); ++i) {
    const double e = expected[size_t(i)];
    ASSERT_NEAR(wide(found[i]), e, tolerance * (1 + std::abs(e))) << what << " " << i;
  }
}

// What the kernels should find, by definition.
struct Reference {
  std::vector<double> y, gx, g_gamma, g_beta, inverse;

  Reference(const Case& c, const std::vector<double>& x, const std::vector<double>& gy,
            const std::vector<double>& gamma, const std::vector<double>& beta)
      : y(x.size()), gx(x.size()), g_gamma(gamma.size()), g_beta(gamma.size()) {
    const size_t area = size_t(c.area), of_group = size_t(c.channels / c.groups);
    const double m = double(of_group * area);
    for (size_t row = 0; row < size_t(c.samples * c.groups); ++row) {
      const auto each = [&](auto f) {
        for (size_t k = 0; k < of_group * area; ++k)
          f(row * of_group * area + k, (row * of_group + k / area) % size_t(c.channels));
      };
      double mean = 0, variance = 0, h = 0, hx = 0;
      if (c.centred) each([&](size_t i, size_t) { mean += x[i] / m; });
      each([&](size_t i, size_t) { variance += (x[i] - mean) * (x[i] - mean) / m; });
      const double scale = 1 / std::sqrt(variance + kEps);
      inverse.push_back(scale);
      each([&](size_t i, size_t k) {
        const double xhat = (x[i] - mean) * scale;
        y[i] = xhat * gamma[k] + beta[k];
        h += gamma[k] * gy[i] / m, hx += gamma[k] * gy[i] * xhat / m;
        g_gamma[k] += gy[i] * xhat, g_beta[k] += gy[i];
      });
      each([&](size_t i, size_t k) {
        const double xhat = (x[i] - mean) * scale;
        gx[i] = scale * (gamma[k] * gy[i] - (c.centred ? h : 0) - xhat * hx);
      });
    }
  }
};

template <class T>
void check(const Case& c, Float code, double eps, double sums) {
  using C = std::conditional_t<sizeof(T) == sizeof(double), double, float>;
  SCOPED_TRACE(c.text() + ", type " + std::to_string(int(code)));
  std::mt19937 random(uint32_t(c.area));
  const auto batch = [&] { return Memory<T>(c.samples, c.channels, c.area, false, c.offset); };
  const auto numbers = [](int64_t n) { return Memory<C>(1, n, 1, false, 0); };
  const Memory<T> x = batch(), gy = batch(), y = batch(), gx = batch();
  const Memory<C> gamma = numbers(c.channels), beta = numbers(c.channels),
                  g_gamma = numbers(c.channels), g_beta = numbers(c.channels),
                  statistics = numbers((c.centred ? 3 : 1) * c.samples * c.groups),
                  partials = numbers(2 * c.samples * c.channels);
  const auto vx = fill(x, c.mean - 2, c.mean + 2, random), vgy = fill(gy, -1, 1.5, random);
  auto vgamma = fill(gamma, -2, 2, random), vbeta = fill(beta, -1, 1, random);
  const auto before_gamma = fill(g_gamma, -1, 1, random), before_beta = fill(g_beta, -1, 1, random);
  if (!c.gamma) vgamma.assign(vgamma.size(), 1);
  if (!c.beta) vbeta.assign(vbeta.size(), 0);
  fill(y, -1, 1, random), fill(gx, -1, 1, random);

  gpu::RowNormalizationArgs args{c.samples, 1, c.channels, c.area, c.groups};
  args.aligned = c.offset == 0, args.centred = c.centred, args.eps = kEps, args.parts = 1;
  args.shared_memory = c.shared_memory;
  args.x = x.data(), args.gy = gy.data(), args.y = y.data();
  args.gamma = c.gamma ? gamma.data() : nullptr, args.beta = c.beta ? beta.data() : nullptr;
  args.statistics = statistics.data();
  const gpu::Launch launch{nullptr, c.multiprocessors, 0, false};
  ASSERT_TRUE(gpu::launch_kept_rows(code, args, launch));
  ASSERT_TRUE(gpu::has_kept_gradient(code, args, launch));
  args.y = gx.data();
  const bool parameters = c.g_gamma || c.g_beta;
  gpu::launch_kept_gradient(
      code, args,
      {c.g_gamma ? g_gamma.data() : nullptr, c.g_beta ? g_beta.data() : nullptr, c.accumulate,
       c.accumulate, parameters ? partials.data() : nullptr},
      launch);

  Reference expected(c, vx, vgy, vgamma, vbeta);
  for (int64_t r = 0; r < c.samples * c.groups; ++r) {
    const double e = expected.inverse[size_t(r)];
    EXPECT_NEAR(wide(statistics[r]), e, sums * e) << r;
  }
  expect_near("y", y, expected.y, eps + sums);
  expect_near("gx", gx, expected.gx, eps + sums);
  const auto finish = [&](const char* what, bool wanted, const Memory<C>& found,
                          std::vector<double>& e, const std::vector<double>& before) {
    for (size_t k = 0; k < e.size(); ++k) {
      if (!wanted) e[k] = 0;
      if (!wanted || c.accumulate) e[k] += before[k];
    }
    expect_near(what, found, e, sums);
  };
  finish("g_gamma", c.g_gamma, g_gamma, expected.g_gamma, before_gamma);
  finish("g_beta", c.g_beta, g_beta, expected.g_beta, before_beta);
  EXPECT_TRUE(x.is_intact() && statistics.is_intact() && partials.is_intact());
}

void check_float32(const Case& c) { check<float>(c, Float::kF32, 1e-6, 2e-5); }
void check_float64(const Case& c) { check<double>(c, Float::kF64, 1e-13, 1e-13); }
void check_float16(const Case& c) { check<__half>(c, Float::kF16, 1e-3, 2e-5); }
void check_bfloat16(const Case& c) { check<__nv_bfloat16>(c, Float::kBf16, 8e-3, 2e-5); }
void check_all(const Case& c) {
  check_float32(c), check_float64(c), check_float16(c), check_bfloat16(c);
}

TEST(KeptRowsOnHost, AllDtypes) {
  check_all({.channels = 8, .area = 264, .groups = 2});
  check_all({.samples = 3, .channels = 6, .area = 196, .groups = 2});  // packs of 8 bytes
}

TEST(KeptRowsOnHost, RunsThatFillNoPacks) {
  check_all({.channels = 6, .area = 49, .groups = 1});
  check_float32({.channels = 8, .area = 144, .offset = 1});
  check_bfloat16({.channels = 8, .area = 144, .offset = 3});
}

TEST(KeptRowsOnHost, FewAndManyChannels) {
  check_float32({.samples = 3, .channels = 2, .area = 1040, .groups = 2});  // a team of warps
  check_bfloat16({.channels = 1, .area = 5000, .groups = 1});
  check_float32({.channels = 3, .area = 521, .groups = 1});
  check_float32({.samples = 2, .channels = 268, .area = 4, .groups = 2});  // a thread each
  check_float16({.samples = 2, .channels = 150, .area = 9, .groups = 1});
}

TEST(KeptRowsOnHost, RowsInTurns) {
  // A block takes several rows, and the last turn has fewer of them than blocks.
  check_float32({.samples = 21, .channels = 6, .area = 272, .groups = 3});
  check_float32({.samples = 7, .area = 272, .multiprocessors = 2, .shared_memory = 6500});
  check_bfloat16({.samples = 9, .channels = 4, .area = 528, .groups = 1, .shared_memory = 11000});
}

TEST(KeptRowsOnHost, EverythingIsOptional) {
  check_float32({.area = 256, .gamma = false, .g_gamma = false});
  check_float32({.area = 256, .beta = false, .g_beta = false, .accumulate = true});
  check_bfloat16({.area = 512, .g_gamma = false, .g_beta = false, .accumulate = true});
  check_float32({.area = 256, .accumulate = true, .centred = false});
}

TEST(KeptRowsOnHost, LargeMeans) { check_float32({.area = 528, .mean = 1e4}); }

TEST(KeptRowsOnHost, OthersAreNotKept) {
  const gpu::Launch launch{nullptr, 132, 0, false};
  gpu::RowNormalizationArgs args{2, 1, 64, 3136, 8};
  args.aligned = true, args.parts = 1, args.shared_memory = 227 << 10;
  EXPECT_TRUE(gpu::has_kept_gradient(Float::kF32, args, launch));
  const auto refuses = [&](auto change) {
    gpu::RowNormalizationArgs other = args;
    change(other);
    return !gpu::has_kept_gradient(Float::kF32, other, launch) &&
           !gpu::launch_kept_rows(Float::kF32, other, launch);
  };
  EXPECT_TRUE(refuses([](auto& a) { a.parts = 2; }));
  EXPECT_TRUE(refuses([](auto& a) { a.positions = 2; }));
  EXPECT_TRUE(refuses([](auto& a) { a.inner = 1; }));
  EXPECT_TRUE(refuses([](auto& a) { a.inner = 60; }));  // 120 packs
  EXPECT_TRUE(refuses([](auto& a) { a.inner = 16 * 3136; }));
  EXPECT_TRUE(refuses([](auto& a) { a.shared_memory = 48 << 10; }));
  EXPECT_TRUE(refuses([](auto& a) { a.samples = int64_t(1) << 30; }));
  args.groups = 4;  // x fits, x and gy do not
  EXPECT_FALSE(gpu::has_kept_gradient(Float::kF32, args, launch));
}

}  // namespace
}  // namespace catena
