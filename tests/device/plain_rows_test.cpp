// The CUDA kernels of plain rows, run on threads of the host, against plain loops in double. Blocks
// have 64 threads there at most: rows of up to 1024 elements are plain. A thread of the host for
// each of the kernel's is slow, so there is one case for each property.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "backends/cuda/normalization/row_normalization.h"
#include "device/row_memory.h"

namespace catena {
namespace {

using gpu::Float;
using testing::expect_near;
using testing::fill;

template <class T>
using Memory = testing::GuardedMemory<T>;

struct Case {
  int64_t rows = 3, size = 64;
  int64_t channels = 0;  // where they are channels of samples
  bool centred = true, gamma = true, beta = true, gx = true, g_gamma = true, g_beta = true;
  bool accumulate = false;
  double offset = 0;
  int multiprocessors = 1;

  std::string text() const {
    std::ostringstream s;
    s << rows << " rows of " << size << ", channels " << channels << (centred ? "" : " not centred")
      << (gamma ? " gamma" : "") << (beta ? " beta" : "") << (gx ? " gx" : "")
      << (g_gamma ? " g_gamma" : "") << (g_beta ? " g_beta" : "")
      << (accumulate ? " accumulate" : "") << ", offset " << offset << ", " << multiprocessors
      << " multiprocessors";
    return s.str();
  }
};

// `eps`: of the storage type.
template <class T>
void check(const Case& c, Float code, double eps, uint32_t seed) {
  SCOPED_TRACE(c.text() + (code == Float::kF32 ? " float32" : " 16 bits"));
  constexpr double kEps = 1e-3;
  std::mt19937 random(seed);
  const auto batch = [&] { return Memory<T>(c.rows, c.size, 1, false, 0); };
  const int64_t parameters = c.channels > 0 ? c.channels : c.size;
  const auto channels = [&] { return Memory<float>(1, parameters, 1, false, 0); };
  const Memory<T> x = batch(), gy = batch(), y = batch(), gx = batch();
  const Memory<float> gamma = channels(), beta = channels(), g_gamma = channels(),
                      g_beta = channels(), statistics(1, 3, c.rows, false, 0);
  const auto vx = fill(x, c.offset - 2, c.offset + 2, random), vgy = fill(gy, -1, 1, random);
  auto vgamma = fill(gamma, 0.5, 2, random), vbeta = fill(beta, -1, 1, random);
  auto e_gamma = fill(g_gamma, -1, 1, random), e_beta = fill(g_beta, -1, 1, random);
  if (!c.gamma) vgamma.assign(vgamma.size(), 1);
  if (!c.beta) vbeta.assign(vbeta.size(), 0);
  if (!c.accumulate) e_gamma.assign(e_gamma.size(), 0), e_beta.assign(e_beta.size(), 0);
  fill(y, -1, 1, random), fill(gx, -1, 1, random);

  gpu::RowNormalizationArgs args{c.rows, 1, c.size, 1, 1};
  if (c.channels > 0) args = {c.rows / c.channels, 1, c.channels, c.size, c.channels};
  args.aligned = true, args.centred = c.centred, args.eps = kEps, args.parts = 1;
  args.x = x.data(), args.gy = gy.data(), args.y = y.data();
  args.gamma = c.gamma ? gamma.data() : nullptr, args.beta = c.beta ? beta.data() : nullptr;
  args.statistics = statistics.data();
  const gpu::Launch launch{nullptr, c.multiprocessors, 0, false};
  ASSERT_TRUE(gpu::has_plain_rows(code, args));
  gpu::launch_plain_rows(code, args, launch);
  args.y = c.gx ? gx.data() : nullptr;
  const Memory<float> partials(1, gpu::plain_gradient_partials(args, launch), 1, false, 0);
  ASSERT_TRUE(gpu::has_plain_gradient(code, args));
  gpu::launch_plain_gradient(
      code, args,
      {c.g_gamma ? g_gamma.data() : nullptr, c.g_beta ? g_beta.data() : nullptr, c.accumulate,
       c.accumulate, partials.data()},
      launch);

  std::vector<double> ey(vx.size()), egx(vx.size());
  const double m = double(c.size);
  for (size_t r = 0; r < size_t(c.rows); ++r) {
    const auto over_row = [&](auto f) {
      for (size_t k = 0; k < size_t(c.size); ++k)
        f(r * size_t(c.size) + k, c.channels > 0 ? r % size_t(c.channels) : k);
    };
    double mean = 0, variance = 0, h = 0, hx = 0;
    if (c.centred) over_row([&](size_t i, size_t) { mean += vx[i] / m; });
    over_row([&](size_t i, size_t) { variance += (vx[i] - mean) * (vx[i] - mean) / m; });
    const double inverse = 1 / std::sqrt(variance + kEps);
    over_row([&](size_t i, size_t k) {
      const double xhat = (vx[i] - mean) * inverse;
      ey[i] = xhat * vgamma[k] + vbeta[k];
      h += vgamma[k] * vgy[i] / m, hx += vgamma[k] * vgy[i] * xhat / m;
      e_gamma[k] += vgy[i] * xhat, e_beta[k] += vgy[i];
    });
    over_row([&](size_t i, size_t k) {
      const double xhat = (vx[i] - mean) * inverse;
      egx[i] = inverse * (vgamma[k] * vgy[i] - (c.centred ? h : 0) - xhat * hx);
    });
    const double found = double(statistics[int64_t(r)]);
    EXPECT_NEAR(found, inverse, 1e-5 * inverse) << r;
  }
  expect_near("y", y, ey, eps + 2e-5);
  if (c.gx) expect_near("gx", gx, egx, eps + 2e-5);
  if (c.g_gamma) expect_near("g_gamma", g_gamma, e_gamma, 2e-5);
  if (c.g_beta) expect_near("g_beta", g_beta, e_beta, 2e-5);
  EXPECT_TRUE(x.is_intact() && statistics.is_intact() && partials.is_intact());
}

void check_float32(const Case& c) { check<float>(c, Float::kF32, 1e-6, uint32_t(c.size)); }
void check_float16(const Case& c) { check<__half>(c, Float::kF16, 1e-3, uint32_t(c.size)); }
void check_bfloat16(const Case& c) {
  check<__nv_bfloat16>(c, Float::kBf16, 8e-3, uint32_t(c.size));
}

TEST(PlainRowsOnHost, RowsOfAllKinds) {
  // A pack, parts of a warp with and without packs to spare, a warp.
  check_float32({.rows = 2, .size = 8});
  check_float16({.rows = 40, .size = 40});
  check_bfloat16({.rows = 5, .size = 264});
  check_bfloat16({.rows = 2, .size = 1024});
}

TEST(PlainRowsOnHost, RowsOfSeveralWarps) {
  check_float32({.rows = 2, .size = 520});
  check_float32({.rows = 3, .size = 1000, .multiprocessors = 2});
}

TEST(PlainRowsOnHost, RowsThatAreChannels) {
  check_float32({.rows = 6, .size = 1000, .channels = 3});  // several warps
  check_float32({.rows = 10, .size = 4, .channels = 5, .accumulate = true});
  check_float16({.rows = 6, .size = 40, .channels = 1, .gx = false});
  check_bfloat16({.rows = 6, .size = 520, .channels = 2, .centred = false, .g_beta = false});
  check_bfloat16({.rows = 3,
                  .size = 64,
                  .channels = 3,
                  .gamma = false,
                  .beta = false,
                  .g_gamma = false,
                  .multiprocessors = 2});
}

TEST(PlainRowsOnHost, EverythingIsOptional) {
  check_float32({.rows = 9, .centred = false, .beta = false, .g_beta = false});
  check_float32({.gamma = false, .gx = false, .accumulate = true});
  check_bfloat16({.rows = 9, .centred = false, .g_gamma = false, .g_beta = false});
  check_bfloat16({.size = 72, .gamma = false, .g_gamma = false, .accumulate = true});
}

TEST(PlainRowsOnHost, LargeMeans) {
  check_float32({.size = 24, .offset = 1e4});
  check_float32({.rows = 2, .size = 1000, .offset = 1e4});
}

TEST(PlainRowsOnHost, OthersAreNotPlain) {
  gpu::RowNormalizationArgs args{3, 1, 64, 1, 1};
  args.aligned = true, args.parts = 1;
  EXPECT_TRUE(gpu::has_plain_rows(Float::kBf16, args));
  EXPECT_FALSE(gpu::has_plain_rows(Float::kF64, args));
  const auto refuses = [&](auto change) {
    gpu::RowNormalizationArgs other = args;
    change(other);
    return !gpu::has_plain_rows(Float::kBf16, other) &&
           !gpu::has_plain_gradient(Float::kBf16, other);
  };
  EXPECT_TRUE(refuses([](auto& a) { a.aligned = false; }));
  EXPECT_TRUE(refuses([](auto& a) { a.parts = 2; }));
  EXPECT_TRUE(refuses([](auto& a) { a.channels = 60; }));
  EXPECT_TRUE(refuses([](auto& a) { a.channels = 1032; }));
  EXPECT_TRUE(refuses([](auto& a) { a.positions = 2; }));
  EXPECT_TRUE(refuses([](auto& a) { a.inner = 8; }));
  EXPECT_TRUE(refuses([](auto& a) { a.samples = (int64_t(1) << 30) + 1; }));
  EXPECT_TRUE(refuses([](auto& a) { a.groups = 2; }));
  args.inner = 1024, args.groups = 64;
  EXPECT_TRUE(gpu::has_plain_gradient(Float::kBf16, args));
  EXPECT_TRUE(refuses([](auto& a) { a.inner = 1032; }));
  EXPECT_TRUE(refuses([](auto& a) { a.inner = 60; }));
  EXPECT_TRUE(refuses([](auto& a) { a.groups = 32; }));
}

}  // namespace
}  // namespace catena
