// The CUDA kernels of rows that registers or shared memory hold, run on threads of the host,
// against plain loops in double. Blocks have 128 threads there at most, those of plain rows 64:
// rows of up to 1024 elements are plain. Blocks of clusters have 32 or 64 threads, of 512 or 1024
// elements, of which one to six rows are in shared memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "backends/cuda/normalization/row_normalization.h"
#include "device/guarded_memory.h"
#include "kernels/row_normalization_case.h"

namespace catena {
namespace {

using gpu::Float;

template <class T>
using Memory = testing::GuardedMemory<T>;

template <class T>
double wide(T v) {
  if constexpr (sizeof(T) > sizeof(float))
    return v;
  else
    return double(float(v));
}

// Random numbers in [low, high), rounded to T; returns what is there.
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

// `tolerance` times 1 + |expected|.
template <class T>
void expect_near(const char* what, const Memory<T>& found, const std::vector<double>& expected,
                 double tolerance) {
  EXPECT_TRUE(found.is_intact()) << what;
  for (int64_t i = 0; i < found.size(); ++i) {
    const double e = expected[size_t(i)];
    ASSERT_NEAR(wide(found[i]), e, tolerance * (1 + std::abs(e))) << what << " " << i;
  }
}

constexpr double kEps = 1e-3;

enum class Way { kPlain, kNarrow, kClusters, kKept, kStrips, kLines, kRows };

struct Case {
  int64_t samples = 2, channels = 4, area = 256, groups = 2;
  bool gamma = true, beta = true, gx = true, g_gamma = true, g_beta = true, accumulate = false;
  bool centred = true;
  bool last = false;    // channels, in memory
  bool added = false;   // x is a sum with a residual
  bool narrow = false;  // gamma and beta are of the storage type
  bool no_gradient = false;
  int offset = 0;  // elements that x begins behind a multiple of 16 bytes
  double mean = 0;
  int multiprocessors = 1;
  int shared_memory = 100 << 10;

  RowLayout layout() const { return {samples, 1, channels, area, groups}; }
  std::string text() const {
    std::ostringstream s;
    s << "(" << samples << ", " << channels << ", " << area << ") in " << groups << " groups"
      << (gamma ? " gamma" : "") << (beta ? " beta" : "") << (gx ? " gx" : "")
      << (g_gamma ? " g_gamma" : "") << (g_beta ? " g_beta" : "")
      << (accumulate ? " accumulate" : "") << (centred ? "" : " not centred")
      << (last ? " last" : "") << (added ? " added" : "") << (narrow ? " narrow" : "")
      << ", offset " << offset << ", mean " << mean << ", " << multiprocessors
      << " multiprocessors, " << shared_memory << " bytes";
    return s.str();
  }
};

// The statistics as a forward kernel leaves them.
template <class C>
void set_statistics(const Memory<C>& to, const Case& c, const testing::RowReference& expected) {
  const int64_t rows = c.samples * c.groups;
  for (int64_t r = 0; r < rows; ++r) {
    to[r] = C(expected.inverse[size_t(r)]);
    if (!c.centred) continue;
    const double mean = expected.means[size_t(r)];
    to[rows + r] = C(mean);
    to[2 * rows + r] = C(mean - double(C(mean)));
  }
}

bool launch_forward(Way way, Float code, const gpu::RowNormalizationArgs& args,
                    const gpu::Launch& launch) {
  if (way == Way::kKept) return gpu::launch_kept_rows(code, args, launch);
  if (way == Way::kClusters) return gpu::launch_cluster_rows(code, args, launch);
  if (way == Way::kRows) {
    gpu::launch_row_normalization(code, args, launch);
    return true;
  }
  if (way == Way::kNarrow) {
    gpu::launch_narrow_rows(code, args, launch);
    return true;
  }
  if (way == Way::kPlain ? !gpu::has_plain_rows(code, args) : !gpu::has_strips(args)) return false;
  (way == Way::kPlain ? gpu::launch_plain_rows : gpu::launch_strips)(code, args, launch);
  return true;
}

bool launch_gradient(Way way, Float code, const gpu::RowNormalizationArgs& args,
                     const gpu::RowParameterSums& sums, const gpu::Launch& launch) {
  switch (way) {
    case Way::kPlain:
    case Way::kNarrow:
      if (!gpu::has_plain_gradient(code, args)) return false;
      gpu::launch_plain_gradient(code, args, sums, launch);
      return true;
    case Way::kClusters:
      if (gpu::cluster_gradient_partials(code, args, launch) == 0) return false;
      gpu::launch_cluster_gradient(code, args, sums, launch);
      return true;
    case Way::kKept:
      if (!gpu::has_kept_gradient(code, args, launch)) return false;
      gpu::launch_kept_gradient(code, args, sums, launch);
      return true;
    case Way::kStrips:
      if (!gpu::has_strip_gradient(code, args, launch)) return false;
      gpu::launch_strip_gradient(code, args, sums, launch);
      return true;
    case Way::kLines:
      if (!gpu::has_line_gradient(code, args)) return false;
      gpu::launch_line_gradient(code, args, sums, launch);
      return true;
    case Way::kRows: gpu::launch_row_gradient(code, args, launch); return true;
  }
  return false;
}

// Numbers for the sums of a gradient.
int64_t partials_of(Way way, Float code, const gpu::RowNormalizationArgs& args,
                    const gpu::Launch& launch) {
  if (way == Way::kPlain || way == Way::kNarrow) return gpu::plain_gradient_partials(args, launch);
  if (way == Way::kClusters) return gpu::cluster_gradient_partials(code, args, launch);
  if (way == Way::kLines) return gpu::line_gradient_partials(code, args, launch);
  return 2 * args.samples * args.channels;
}

// Arrays of one case.
template <class T>
struct Arrays {
  using C = std::conditional_t<sizeof(T) == sizeof(double), double, float>;
  const Case& c;
  Memory<T> x = batch(), gy = batch(), y = batch(), gx = batch(), residual = batch(), sum = batch(),
            gsum = batch();
  Memory<C> gamma = numbers(c.channels), beta = numbers(c.channels), g_gamma = numbers(c.channels),
            g_beta = numbers(c.channels),
            statistics = numbers((c.centred ? 3 : 1) * c.samples * c.groups);

  Memory<T> narrow_gamma{1, c.channels, 1, false, 0}, narrow_beta{1, c.channels, 1, false, 0};

  Memory<T> batch() const { return {c.samples, c.channels, c.area, c.last, c.offset}; }
  static Memory<C> numbers(int64_t n) { return {1, n, 1, false, 0}; }
  gpu::RowNormalizationArgs args() const {
    gpu::RowNormalizationArgs args{c.samples, 1, c.channels, c.area, c.groups};
    if (c.last) args.positions = c.area, args.inner = 1;
    args.aligned = c.offset == 0, args.centred = c.centred, args.eps = kEps, args.parts = 1;
    args.shared_memory = c.shared_memory;
    args.x = x.data(), args.gy = gy.data(), args.y = y.data();
    if (c.gamma)
      args.gamma = {c.narrow ? (const void*)narrow_gamma.data() : gamma.data(), c.narrow};
    if (c.beta) args.beta = {c.narrow ? (const void*)narrow_beta.data() : beta.data(), c.narrow};
    args.statistics = statistics.data();
    return args;
  }
};

// `eps`: of the storage type; `sums`: what sums in the compute type may be off.
template <class T>
void check(Way way, const Case& c, Float code, double eps, double sums) {
  if (way == Way::kStrips && c.shared_memory > 0) {  // without it, too
    Case other = c;
    other.shared_memory = 0;
    check<T>(way, other, code, eps, sums);
  }
  SCOPED_TRACE(c.text() + ", type " + std::to_string(int(code)));
  std::mt19937 random(uint32_t(c.area));
  const Arrays<T> a{c};
  auto x = fill(a.x, c.mean - 2, c.mean + 2, random);
  const auto gy = fill(a.gy, -1, 1.5, random);
  auto gamma = fill(a.gamma, -2, 2, random), beta = fill(a.beta, -1, 1, random);
  if (c.narrow) {
    gamma = fill(a.narrow_gamma, -2, 2, random);
    beta = fill(a.narrow_beta, -1, 1, random);
  }
  const auto before_gamma = fill(a.g_gamma, -1, 1, random),
             before_beta = fill(a.g_beta, -1, 1, random);
  if (!c.gamma) gamma.assign(gamma.size(), 1);
  if (!c.beta) beta.assign(beta.size(), 0);
  fill(a.y, -1, 1, random), fill(a.gx, -1, 1, random);
  std::vector<double> gsum(x.size());
  if (c.added) {
    fill(a.residual, -1, 1, random), fill(a.sum, -1, 1, random);
    gsum = fill(a.gsum, -1, 1, random);
    for (int64_t i = 0; i < a.x.size(); ++i)  // in the compute type, and then rounded
      x[size_t(i)] = wide(T(typename Arrays<T>::C(wide(a.x[i]) + wide(a.residual[i]))));
  }
  testing::RowReference expected(c.layout(), c.centred, kEps, x, gy, gamma, beta);

  gpu::RowNormalizationArgs args = a.args();
  if (c.added) args.residual = a.residual.data(), args.sum = a.sum.data();
  const gpu::Launch launch{nullptr, c.multiprocessors, 0, false};
  if (way == Way::kLines) {
    set_statistics(a.statistics, c, expected);
  } else {
    ASSERT_TRUE(launch_forward(way, code, args, launch));
    expect_near("y", a.y, expected.y, eps + sums);
    if (c.added) expect_near("sum", a.sum, x, 0);
    for (int64_t r = 0; r < c.samples * c.groups; ++r) {
      const double e = expected.inverse[size_t(r)];
      EXPECT_NEAR(double(a.statistics[r]), e, std::min(sums, 1e-5) * e) << r;
    }
  }
  if (c.no_gradient) return;
  args.y = c.gx ? a.gx.data() : nullptr;
  if (c.added) args.x = a.sum.data(), args.gsum = a.gsum.data(), args.residual = nullptr;
  for (size_t i = 0; i < gsum.size(); ++i) expected.gx[i] += gsum[i];
  const auto partials = a.numbers(partials_of(way, code, args, launch));
  const bool has_partials = way == Way::kLines || c.g_gamma || c.g_beta;
  ASSERT_TRUE(launch_gradient(way, code, args,
                              {{c.g_gamma ? a.g_gamma.data() : nullptr, false, c.accumulate},
                               {c.g_beta ? a.g_beta.data() : nullptr, false, c.accumulate},
                               has_partials ? partials.data() : nullptr},
                              launch));
  if (c.gx) expect_near("gx", a.gx, expected.gx, eps + sums);
  const auto finish = [&](const char* what, bool wanted, const auto& found, std::vector<double>& e,
                          const std::vector<double>& before) {
    for (size_t k = 0; k < e.size(); ++k) {
      if (!wanted) e[k] = 0;
      if (!wanted || c.accumulate) e[k] += before[k];
    }
    expect_near(what, found, e, sums);
  };
  finish("g_gamma", c.g_gamma, a.g_gamma, expected.g_gamma, before_gamma);
  finish("g_beta", c.g_beta, a.g_beta, expected.g_beta, before_beta);
  EXPECT_TRUE(a.x.is_intact() && a.gy.is_intact() && a.statistics.is_intact());
  EXPECT_TRUE(partials.is_intact());
}

void check_float32(Way way, const Case& c) { check<float>(way, c, Float::kF32, 1e-6, 2e-5); }
void check_float64(Way way, const Case& c) { check<double>(way, c, Float::kF64, 1e-13, 1e-13); }
void check_float16(Way way, const Case& c) { check<__half>(way, c, Float::kF16, 1e-3, 2e-5); }
void check_bfloat16(Way way, const Case& c) {
  check<__nv_bfloat16>(way, c, Float::kBf16, 8e-3, 2e-5);
}
void check_all(Way way, const Case& c) {
  check_float32(way, c), check_float64(way, c), check_float16(way, c), check_bfloat16(way, c);
}

// A gamma for each element; threads of the host are slow, so there is one case for each property.
TEST(PlainRowsOnHost, RowsOfAllKinds) {
  // A pack, parts of a warp with and without packs to spare, a warp.
  check_float32(Way::kPlain, {.samples = 2, .channels = 8, .area = 1, .groups = 1});
  check_float16(Way::kPlain, {.samples = 40, .channels = 40, .area = 1, .groups = 1});
  check_bfloat16(Way::kPlain, {.samples = 5, .channels = 264, .area = 1, .groups = 1});
  check_bfloat16(Way::kPlain, {.samples = 2, .channels = 1024, .area = 1, .groups = 1});
}

TEST(PlainRowsOnHost, RowsOfSeveralWarps) {
  check_float32(Way::kPlain, {.samples = 2, .channels = 520, .area = 1, .groups = 1});
  Case few{.samples = 3, .channels = 1000, .area = 1, .groups = 1};
  few.multiprocessors = 2;
  check_float32(Way::kPlain, few);
}

TEST(PlainRowsOnHost, RowsThatAreChannels) {
  const auto of_channels = [](int64_t samples, int64_t channels, int64_t area) {
    return Case{.samples = samples, .channels = channels, .area = area, .groups = channels};
  };
  check_float32(Way::kPlain, of_channels(2, 3, 1000));  // several warps
  Case c = of_channels(2, 5, 4);
  c.accumulate = true;
  check_float32(Way::kPlain, c);
  c = of_channels(6, 1, 40);
  c.gx = false;
  check_float16(Way::kPlain, c);
  c = of_channels(3, 2, 520);
  c.centred = c.g_beta = false;
  check_bfloat16(Way::kPlain, c);
  c = of_channels(1, 3, 64);
  c.gamma = c.beta = c.g_gamma = false, c.multiprocessors = 2;
  check_bfloat16(Way::kPlain, c);
}

TEST(PlainRowsOnHost, EverythingIsOptional) {
  const Case nine{.samples = 9, .channels = 64, .area = 1, .groups = 1, .centred = false};
  Case c = nine;
  c.beta = c.g_beta = false;
  check_float32(Way::kPlain, c);
  c = nine;
  c.g_gamma = c.g_beta = false;
  check_bfloat16(Way::kPlain, c);
  c = {.samples = 3, .channels = 64, .area = 1, .groups = 1, .gamma = false, .gx = false};
  c.accumulate = true;
  check_float32(Way::kPlain, c);
  c = {.samples = 3, .channels = 72, .area = 1, .groups = 1, .gamma = false, .g_gamma = false};
  c.accumulate = true;
  check_bfloat16(Way::kPlain, c);
}

TEST(PlainRowsOnHost, SumsWithAResidual) {
  Case c{.samples = 7, .channels = 40, .area = 1, .groups = 1, .added = true};
  check_float32(Way::kPlain, c);
  c.channels = 1000, c.centred = c.beta = c.g_beta = false;
  check_float32(Way::kPlain, c), check_float16(Way::kPlain, c), check_bfloat16(Way::kPlain, c);
}

// One to four packs for each thread of a warp, some or all of which they have.
TEST(NarrowRowsOnHost, OneToFourPacks) {
  for (const int64_t channels : {8, 256, 264, 512, 768, 776, 1024}) {
    Case c{.samples = 5, .channels = channels, .area = 1, .groups = 1, .added = true};
    c.narrow = channels % 3 != 0;
    check_bfloat16(Way::kNarrow, c);
    c.added = channels >= 512, c.samples = 11;
    c.narrow = !c.narrow, c.centred = c.g_beta = false;
    check_float16(Way::kNarrow, c);
  }
}

// A block for each, of 64 to 256 threads.
TEST(NarrowRowsOnHost, LongRows) {
  for (const int64_t channels : {1032, 4096, 8192}) {
    Case c{.samples = 3, .channels = channels, .area = 1, .groups = 1, .mean = 50};
    const auto check_forward = [&](bool added) {
      Case of = c;
      of.added = added, of.narrow = added == (channels < 4096);
      of.no_gradient = true;
      check_bfloat16(Way::kNarrow, of), check_float16(Way::kNarrow, of);
    };
    check_forward(false), check_forward(true);
  }
}

TEST(NarrowRowsOnHost, EverythingIsOptional) {
  Case c{.samples = 3, .channels = 512, .area = 1, .groups = 1, .added = true};
  c.gamma = false, c.narrow = true;
  check_bfloat16(Way::kNarrow, c);
  c.gamma = true, c.beta = c.g_gamma = false, c.accumulate = true;
  check_bfloat16(Way::kNarrow, c);
  c.gx = c.added = false, c.g_gamma = true;
  check_bfloat16(Way::kNarrow, c);
  c.mean = 100;
  check_float16(Way::kNarrow, c);
}

// Whole warps, two rows or one at a time in a block, and more rows than blocks take at once.
TEST(PlainRowsOnHost, GradientsOfRowsThatFillWarps) {
  for (const int64_t channels : {256, 512}) {
    Case c{.samples = 7, .channels = channels, .area = 1, .groups = 1};
    check_bfloat16(Way::kPlain, c);
    c.narrow = true, c.accumulate = true, c.centred = false;
    check_float16(Way::kPlain, c);
    c.gx = false, c.multiprocessors = 2;
    check_bfloat16(Way::kPlain, c);
    c.gx = c.added = true;
    check_bfloat16(Way::kPlain, c);
    c.narrow = false;
    check_float16(Way::kPlain, c);
  }
}

// Two to sixteen blocks, some of which are not full or have nothing, and rows in turns.
TEST(ClusterRowsOnHost, PiecesAndTurns) {
  const auto rows = [](int64_t samples, int64_t channels, int clusters, int blocks) {
    Case c{.samples = samples, .channels = channels, .area = 1, .groups = 1};
    c.multiprocessors = clusters * blocks;
    return c;
  };
  check_float32(Way::kClusters, rows(5, 2048, 2, 4));
  check_float32(Way::kClusters, rows(3, 1028, 1, 4));
  check_bfloat16(Way::kClusters, rows(2, 2056, 3, 8));
  check_float16(Way::kClusters, rows(9, 8192, 1, 16));
  check_float32(Way::kClusters, rows(21, 1032, 20, 4));
  check_float32(Way::kClusters, rows(2, 8204, 1, 16));  // of 64 threads
  check_bfloat16(Way::kClusters, rows(2, 16376, 1, 16));
}

TEST(ClusterRowsOnHost, SumsWithAResidual) {
  Case c{.samples = 5, .channels = 1600, .area = 1, .groups = 1, .added = true};
  c.multiprocessors = 4;
  check_float32(Way::kClusters, c), check_float16(Way::kClusters, c);
  c.narrow = c.accumulate = true, c.centred = c.beta = c.g_beta = false;
  check_float32(Way::kClusters, c), check_bfloat16(Way::kClusters, c);
}

TEST(ClusterRowsOnHost, EverythingIsOptional) {
  Case c{.samples = 3, .channels = 3000, .area = 1, .groups = 1, .gamma = false};
  c.multiprocessors = 8, c.gx = false, c.accumulate = true;
  check_float32(Way::kClusters, c);
  c.gx = true, c.g_gamma = c.g_beta = c.accumulate = false;
  check_bfloat16(Way::kClusters, c);
  c.g_beta = true;
  check_float32(Way::kClusters, c);
  c.mean = 1e4, c.g_gamma = true;
  check_float32(Way::kClusters, c);
}

TEST(ClusterRowsOnHost, OthersHaveNoClusters) {
  const gpu::Launch launch{nullptr, 64, 0, false};
  gpu::RowNormalizationArgs args{3, 1, 16384, 1, 1};
  args.aligned = true, args.parts = 1;
  EXPECT_NE(gpu::cluster_gradient_partials(Float::kBf16, args, launch), 0);
  const auto refuses = [&](auto change) {
    gpu::RowNormalizationArgs other = args;
    gpu::Launch of_other = launch;
    change(other, of_other);
    return !gpu::launch_cluster_rows(Float::kBf16, other, of_other) &&
           gpu::cluster_gradient_partials(Float::kBf16, other, of_other) == 0;
  };
  EXPECT_TRUE(refuses([](auto& a, auto&) { a.aligned = false; }));
  EXPECT_TRUE(refuses([](auto& a, auto&) { a.channels = 15004; }));
  EXPECT_TRUE(refuses([](auto& a, auto&) { a.channels = 16392; }));
  EXPECT_TRUE(refuses([](auto& a, auto&) { a.channels = 1024; }));
  EXPECT_TRUE(refuses([](auto& a, auto&) { a.positions = 2; }));
  EXPECT_TRUE(refuses([](auto& a, auto&) { a.inner = 8; }));
  EXPECT_TRUE(refuses([](auto& a, auto&) { a.groups = 2; }));
  EXPECT_TRUE(refuses([](auto& a, auto&) { a.samples = (int64_t(1) << 30) + 1; }));
  EXPECT_TRUE(refuses([](auto&, auto& l) { l.multiprocessors = 8; }));
  EXPECT_FALSE(gpu::launch_cluster_rows(Float::kF64, args, launch));
}

// Numbers of rows in registers, and more of them than fit.
TEST(RowsOnHost, SumsWithAResidual) {
  for (const int64_t channels : {37, 1100})
    for (const bool centred : {true, false}) {
      Case c{.samples = 5, .channels = channels, .area = 1, .groups = 1, .added = true};
      c.centred = centred, c.g_gamma = c.g_beta = false;
      check_all(Way::kRows, c);
      c.channels += 3;
      check_float64(Way::kRows, c);
    }
}

TEST(PlainRowsOnHost, LargeMeans) {
  check_float32(Way::kPlain, {.samples = 3, .channels = 24, .area = 1, .groups = 1, .mean = 1e4});
  check_float32(Way::kPlain, {.samples = 2, .channels = 1000, .area = 1, .groups = 1, .mean = 1e4});
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

TEST(KeptRowsOnHost, AllDtypes) {
  check_all(Way::kKept, {.channels = 8, .area = 264, .groups = 2});
  check_all(Way::kKept,
            {.samples = 3, .channels = 6, .area = 196, .groups = 2});  // packs of 8 bytes
}

TEST(KeptRowsOnHost, RunsThatFillNoPacks) {
  check_all(Way::kKept, {.channels = 6, .area = 49, .groups = 1});
  check_float32(Way::kKept, {.channels = 8, .area = 144, .offset = 1});
  check_bfloat16(Way::kKept, {.channels = 8, .area = 144, .offset = 3});
}

TEST(KeptRowsOnHost, FewAndManyChannels) {
  check_float32(Way::kKept,
                {.samples = 3, .channels = 2, .area = 1040, .groups = 2});  // a team of warps
  check_bfloat16(Way::kKept, {.channels = 1, .area = 5000, .groups = 1});
  check_float32(Way::kKept, {.channels = 3, .area = 521, .groups = 1});
  check_float32(Way::kKept,
                {.samples = 2, .channels = 268, .area = 4, .groups = 2});  // a thread each
  check_float16(Way::kKept, {.samples = 2, .channels = 150, .area = 9, .groups = 1});
}

TEST(KeptRowsOnHost, RowsInTurns) {
  // A block takes several rows, and the last turn has fewer of them than blocks.
  check_float32(Way::kKept, {.samples = 21, .channels = 6, .area = 272, .groups = 3});
  check_float32(Way::kKept,
                {.samples = 7, .area = 272, .multiprocessors = 2, .shared_memory = 6500});
  check_bfloat16(Way::kKept,
                 {.samples = 9, .channels = 4, .area = 528, .groups = 1, .shared_memory = 11000});
}

TEST(KeptRowsOnHost, EverythingIsOptional) {
  check_float32(Way::kKept, {.area = 256, .gamma = false, .g_gamma = false});
  check_float32(Way::kKept, {.area = 256, .beta = false, .g_beta = false, .accumulate = true});
  check_bfloat16(Way::kKept, {.area = 512, .g_gamma = false, .g_beta = false, .accumulate = true});
  check_float32(Way::kKept, {.area = 256, .accumulate = true, .centred = false});
}

TEST(KeptRowsOnHost, LargeMeans) { check_float32(Way::kKept, {.area = 528, .mean = 1e4}); }

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

TEST(StripsOnHost, AllDtypes) {
  check_all(Way::kStrips, {.samples = 2, .channels = 16, .area = 37, .groups = 4, .last = true});
  // Two strips, of which the last one has fewer groups.
  check_all(Way::kStrips, {.samples = 2, .channels = 96, .area = 9, .groups = 12, .last = true});
}

TEST(StripsOnHost, OddChannelsAndAddresses) {
  check_float32(Way::kStrips, {.channels = 9, .area = 50, .groups = 3, .last = true});
  check_bfloat16(Way::kStrips, {.channels = 70, .area = 11, .groups = 70, .last = true});
  check_float16(Way::kStrips, {.channels = 16, .area = 20, .groups = 2, .last = true, .offset = 1});
  check_float32(Way::kStrips, {.samples = 3, .channels = 64, .area = 2, .groups = 2, .last = true});
}

TEST(StripsOnHost, KeptWhatFits) {
  // Narrower strips, since wider ones do not fit, and since there would be too few of them.
  const Case wide{.samples = 1, .channels = 64, .area = 130, .groups = 8, .last = true};
  Case narrow = wide;
  narrow.shared_memory = 40 << 10;
  check_float32(Way::kStrips, narrow);
  narrow = wide;
  narrow.samples = 3, narrow.multiprocessors = 3;
  check_float32(Way::kStrips, narrow);
  check_bfloat16(Way::kStrips, narrow);
}

TEST(StripsOnHost, EverythingIsOptional) {
  check_float32(Way::kStrips, {.gamma = false, .g_gamma = false, .last = true});
  check_float32(Way::kStrips, {.beta = false, .g_beta = false, .accumulate = true, .last = true});
  check_bfloat16(Way::kStrips, {.g_gamma = false, .g_beta = false, .last = true});
  check_float32(Way::kStrips, {.accumulate = true, .last = true, .mean = 1e4});
}

TEST(StripsOnHost, FewBlocksAreRefused) {
  gpu::RowNormalizationArgs args{66, 3136, 256, 1, 32};
  args.centred = true;
  EXPECT_TRUE(gpu::has_strip_gradient(Float::kF32, args, {nullptr, 264, 0, false}));
  EXPECT_FALSE(gpu::has_strip_gradient(Float::kF32, args, {nullptr, 265, 0, false}));
  args.positions = 15;  // too few for lines
  EXPECT_TRUE(gpu::has_strip_gradient(Float::kF32, args, {nullptr, 265, 0, false}));
}

TEST(LinesOnHost, AllDtypes) {
  check_all(Way::kLines, {.channels = 8, .area = 528, .groups = 2});
  check_all(Way::kLines, {.channels = 24, .area = 96, .groups = 2, .last = true});
}

TEST(LinesOnHost, RunsInSplitsAndTeams) {
  // Several splits of a channel, of which the threads take packs in turns, with some left over.
  check_float32(Way::kLines,
                {.samples = 1, .channels = 3, .area = 16404, .groups = 1, .multiprocessors = 2});
  // A team for each channel, and more teams than channels.
  check_bfloat16(Way::kLines, {.samples = 3, .channels = 6, .area = 360, .groups = 2});
  check_float32(Way::kLines, {.samples = 2, .channels = 134, .area = 4, .groups = 1});
  check_float32(Way::kLines, {.channels = 10, .area = 49, .groups = 2});
  check_float16(Way::kLines, {.channels = 6, .area = 264, .groups = 2, .offset = 1});
}

TEST(LinesOnHost, ColumnsInSplitsAndStrips) {
  check_float32(Way::kLines, {.samples = 2,
                              .channels = 264,
                              .area = 700,
                              .groups = 2,
                              .last = true,
                              .multiprocessors = 4});
  check_bfloat16(Way::kLines, {.channels = 50, .area = 300, .groups = 1, .last = true});
  check_float32(Way::kLines,
                {.samples = 1, .channels = 9, .area = 2000, .groups = 3, .last = true});
}

TEST(LinesOnHost, EverythingIsOptional) {
  check_float32(Way::kLines, {.area = 1024, .gamma = false, .g_gamma = false});
  check_float32(Way::kLines, {.area = 1024, .g_beta = false, .accumulate = true});
  check_bfloat16(Way::kLines, {.area = 1024, .g_gamma = false, .g_beta = false});
  check_float32(Way::kLines, {.area = 1024, .accumulate = true, .centred = false, .last = true});
  check_float32(Way::kLines, {.area = 1024, .accumulate = true, .mean = 1e4});
}

TEST(LinesOnHost, ShortRowsAreRefused) {
  gpu::RowNormalizationArgs args{2, 1, 8, 128, 2};
  args.aligned = true;
  EXPECT_TRUE(gpu::has_line_gradient(Float::kF32, args));
  EXPECT_FALSE(gpu::has_line_gradient(Float::kBf16, args));  // 64 packs
  args = {2, 15, 1 << 20, 1, 2};
  EXPECT_FALSE(gpu::has_line_gradient(Float::kF32, args));
  args.positions = 16;
  EXPECT_TRUE(gpu::has_line_gradient(Float::kF32, args));
  args = {2, 1, 1 << 20, 1, 1};  // a layer normalization
  EXPECT_FALSE(gpu::has_line_gradient(Float::kF32, args));
}

}  // namespace
}  // namespace catena
