// The slots of row normalization on every device against plain loops in double.
#include "catena/kernels/row_normalization.h"

#include <gtest/gtest.h>

#include "catena/array/math.h"
#include "catena/core/config.h"
#include "catena/testing.h"
#include "kernels/normalization_case.h"
#include "kernels/row_normalization_case.h"

namespace catena {
namespace {

using testing::mismatch;
using testing::Numbers;

struct Case {
  Dtype dtype = Dtype::kFloat32;
  RowLayout layout{4, 1, 6, 5, 2};
  bool centred = true, gamma = true, beta = true, gx = true, g_gamma = true, g_beta = true;
  bool accumulate = false, aligned = true, in_place = false;
  bool residual = false;  // what is normalized is a sum, whose gradient is added
  bool narrow = false;    // gamma and beta are of x's dtype
  double offset = 0, spread = 2, eps = 1e-3;

  size_t size() const { return size_t(layout.rows() * layout.size()); }
  Dtype wide() const { return dtype == Dtype::kFloat64 ? dtype : Dtype::kFloat32; }
  double tolerance() const {
    testing::NormalizationCase c;
    c.dtype = dtype;
    return testing::batch_tolerance(c);
  }
  std::string text() const {
    std::ostringstream s;
    s << name(dtype) << " (" << layout.samples << ' ' << layout.positions << ' ' << layout.channels
      << ' ' << layout.inner << ") in " << layout.groups << (centred ? "" : " not centred")
      << (gamma ? " gamma" : "") << (beta ? " beta" : "") << (gx ? " gx" : "")
      << (g_gamma ? " g_gamma" : "") << (g_beta ? " g_beta" : "")
      << (accumulate ? " accumulate" : "") << (aligned ? "" : " not aligned")
      << (in_place ? " in place" : "") << (residual ? " residual" : "")
      << (narrow ? " narrow" : "");
    return s.str();
  }
};

struct Data {
  Data(const Case& c, Device device, uint32_t seed) {
    std::mt19937 random(seed);
    const auto batch = [&](double low, double high) {
      Numbers made =
          testing::random_numbers(random, {int64_t(c.size())}, c.dtype, device, low, high);
      if (!c.aligned) made.array = testing::placed(made.array, false);
      return made;
    };
    const auto channel = [&](double low, double high, bool narrow = false) {
      return testing::random_numbers(random, {c.layout.channels}, narrow ? c.dtype : c.wide(),
                                     device, low, high);
    };
    x = batch(c.offset - c.spread, c.offset + c.spread), gy = batch(-1, 1);
    y = batch(-1, 1), gx = batch(-1, 1);
    if (c.residual) add_residual(batch(-1, 1), batch(-1, 1));
    gamma = channel(0.5, 2, c.narrow), beta = channel(-1, 1, c.narrow);
    g_gamma = channel(-1, 1), g_beta = channel(-1, 1);
    statistics = zeros({3 * c.layout.rows()}, {c.wide(), device});
  }
  // normalized: x, or with a residual the sum that the call should write.
  Numbers x, gy, y, gx, gamma, beta, g_gamma, g_beta, residual, normalized, gsum;
  Array statistics, sum;

 private:
  void add_residual(const Numbers& other, const Numbers& gradient) {
    residual = other, gsum = gradient;
    normalized.array = x.array + residual.array;
    normalized.values = testing::numbers_of(normalized.array);
    sum = zeros_like(x.array);
  }
};

testing::RowReference expected(const Case& c, const Data& d) {
  const size_t channels = size_t(c.layout.channels);
  testing::RowReference e(c.layout, c.centred, c.eps, c.residual ? d.normalized.values : d.x.values,
                          d.gy.values, c.gamma ? d.gamma.values : std::vector<double>(channels, 1),
                          c.beta ? d.beta.values : std::vector<double>(channels, 0));
  for (size_t k = 0; c.accumulate && k < channels; ++k) {
    e.g_gamma[k] += d.g_gamma.values[k];
    e.g_beta[k] += d.g_beta.values[k];
  }
  for (size_t i = 0; i < d.gsum.values.size(); ++i) e.gx[i] += d.gsum.values[i];
  return e;
}

const Array* if_wanted(bool wanted, const Numbers& n) { return wanted ? &n.array : nullptr; }

void check(Device device, const Case& c, uint32_t seed) {
  const Data d(c, device, seed);
  const auto e = expected(c, d);
  // x is written over: the gradient reads a copy.
  const Array x = testing::placed(d.x.array, c.aligned), &y = c.in_place ? x : d.y.array;
  kernels::row_normalization(
      device,
      {c.layout, &x, if_wanted(c.gamma, d.gamma), if_wanted(c.beta, d.beta), c.eps, c.centred, &y,
       &d.statistics, if_wanted(c.residual, d.residual), c.residual ? &d.sum : nullptr});
  if (c.residual) {
    EXPECT_EQ(mismatch("sum", d.sum, d.normalized.values, 0), "") << c.text() << " on " << device;
  }
  kernels::row_normalization_grad(
      device, {c.layout, c.residual ? &d.sum : &d.x.array, &d.gy.array, if_wanted(c.gamma, d.gamma),
               &d.statistics, c.centred, if_wanted(c.gx, d.gx), if_wanted(c.g_gamma, d.g_gamma),
               if_wanted(c.g_beta, d.g_beta), c.accumulate, c.accumulate,
               if_wanted(c.residual && c.gx, d.gsum)});
  const double scale = std::max(1.0, 2 / c.spread);  // of the inverse deviation
  const double sums = (c.wide() == Dtype::kFloat64 ? 1e-11 : 2e-5) *
                      std::sqrt(double(c.size()) / double(c.layout.channels));
  EXPECT_EQ(mismatch("y", y, e.y, 2 * c.tolerance()), "") << c.text() << " on " << device;
  if (c.gx) {
    EXPECT_EQ(mismatch("gx", d.gx.array, e.gx, 4 * scale * c.tolerance()), "")
        << c.text() << " on " << device;
  }
  if (c.g_gamma) {
    EXPECT_EQ(mismatch("g_gamma", d.g_gamma.array, e.g_gamma, sums), "")
        << c.text() << " on " << device;
  }
  if (c.g_beta) {
    EXPECT_EQ(mismatch("g_beta", d.g_beta.array, e.g_beta, sums), "")
        << c.text() << " on " << device;
  }
}

Case random_case(std::mt19937& random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const auto coin = [&] { return pick(0, 1) != 0; };
  Case c;
  const int kind = int(pick(0, 2));  // rows, channels first, channels last
  c.layout.groups = kind == 0 ? 1 : pick(1, 5);
  c.layout.channels = c.layout.groups * (coin() ? 8 * pick(1, 4) : pick(1, 9));
  c.layout.inner = kind == 1 ? (coin() ? 8 * pick(1, 12) : pick(2, 70)) : 1;
  c.layout.positions = kind == 2 ? pick(1, 90) : 1;
  c.layout.samples = kind == 0 ? pick(1, 300) : pick(1, 5);
  if (kind == 0 && coin()) c.layout.channels = coin() ? 8 * pick(1, 300) : pick(1, 3000);
  c.centred = pick(0, 3) != 0, c.gamma = coin(), c.beta = coin();
  c.gx = pick(0, 4) != 0, c.g_gamma = coin(), c.g_beta = coin();
  c.accumulate = coin(), c.aligned = pick(0, 3) != 0, c.in_place = pick(0, 3) == 0;
  return c;
}

std::vector<Device> first_devices() {
  std::vector<Device> result;
  for (const Device device : testing::devices())
    if (device.index() == 0) result.push_back(device);
  return result;
}

constexpr Dtype kFloats[] = {Dtype::kFloat32, Dtype::kFloat64, Dtype::kFloat16, Dtype::kBFloat16};

TEST(RowNormalization, AgreesWithItsDefinition) {
  for (const Device device : first_devices()) {
    std::mt19937 random(1);
    for (uint32_t i = 0; i < 40; ++i) {
      Case c = random_case(random);
      for (const Dtype dtype : kFloats) {
        c.dtype = dtype;
        check(device, c, i);
        if (HasFailure()) return;
      }
    }
  }
}

// Shapes at the borders of the providers' ways: rows for a warp, for several and too long for
// registers, groups in runs, single channels, single numbers.
TEST(RowNormalization, TakesEveryShape) {
  const RowLayout layouts[] = {
      {1, 1, 1, 1, 1},      {3, 1, 1, 1, 1},     {2000, 1, 3, 1, 1}, {7, 1, 511, 1, 1},
      {7, 1, 512, 1, 1},    {3, 1, 1024, 1, 1},  {3, 1, 1025, 1, 1}, {2, 1, 4096, 1, 1},
      {2, 1, 9000, 1, 1},   {1, 1, 40001, 1, 1}, {2, 1, 8, 1, 8},    {2, 1, 8, 1, 4},
      {2, 1, 6, 4096, 2},   {2, 1, 4, 49, 4},    {2, 4096, 8, 1, 2}, {2, 1000, 3, 1, 3},
      {1, 20000, 16, 1, 1}, {2, 49, 32, 1, 4},   {130, 2, 8, 1, 2},  {1, 1, 3, 70000, 3}};
  for (const Device device : first_devices())
    for (const RowLayout& layout : layouts)
      for (const Dtype dtype : kFloats) {
        Case c;
        c.layout = layout;
        c.dtype = dtype;
        check(device, c, 3);
      }
}

// Rows for one warp, several and a block in GPUs' kernels of plain rows, longer ones, and rows that
// are channels; in float32 more of them than a GPU takes at a time.
TEST(RowNormalization, TakesRowsThatFitABlock) {
  const RowLayout layouts[] = {{300, 1, 256, 1, 1},  {140, 1, 4104, 1, 1}, {2, 1, 4096, 1, 1},
                               {2, 1, 8192, 1, 1},   {2, 1, 8200, 1, 1},   {3, 1, 96, 64, 96},
                               {2, 1, 20, 3136, 20}, {2, 1, 3, 8192, 3},   {1, 1, 3, 8200, 3},
                               {20, 1, 1, 72, 1},    {9, 1, 70, 4, 70}};
  for (const Device device : first_devices())
    for (const RowLayout& layout : layouts)
      for (const Dtype dtype : {Dtype::kFloat32, Dtype::kFloat16, Dtype::kBFloat16})
        for (const bool all : {true, false}) {
          Case c;
          c.layout = layout, c.dtype = dtype;
          c.centred = c.beta = c.g_beta = all;
          c.accumulate = c.in_place = !all;
          check(device, c, 4);
          if (HasFailure()) return;
        }
}

// Sums of 16 bits as wide as those of transformers: for a warp a row, for several, and for a block.
TEST(RowNormalization, TakesSumsOfTransformers) {
  for (const Device device : first_devices())
    for (const auto& [rows, columns] :
         {std::pair<int64_t, int64_t>{300, 256}, {70, 768}, {40, 1024}, {9, 1280}, {20, 2304}})
      for (const Dtype dtype : {Dtype::kFloat16, Dtype::kBFloat16})
        for (const bool all : {true, false}) {
          Case c;
          c.layout = {rows, 1, columns, 1, 1}, c.dtype = dtype;
          c.residual = true, c.narrow = c.centred = c.beta = c.g_beta = all;
          check(device, c, 5);
          if (HasFailure()) return;
        }
}

// Rows that are longer than a GPU's block holds: of two to sixteen blocks of a cluster, more of
// them than there are clusters, one, odd ones and others that no cluster takes.
TEST(RowNormalization, TakesLongRows) {
  for (const Device device : first_devices())
    for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{150, 8200},
                                        {3, 8193},
                                        {5, 16384},
                                        {3, 20000},
                                        {20, 65536},
                                        {1, 262144},
                                        {1, 262152}})
      for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16, Dtype::kFloat16})
        for (const bool all : {true, false}) {
          const bool is_large = rows * columns > 100000;
          if (is_large && (dtype == Dtype::kFloat16 || all == (dtype == Dtype::kFloat32))) continue;
          Case c;
          c.layout = {rows, 1, columns, 1, 1}, c.dtype = dtype;
          c.centred = c.beta = c.g_beta = all, c.residual = !all;
          c.accumulate = c.narrow = !all, c.gx = columns != 20000;
          check(device, c, 8);
          if (is_large) continue;
          c.residual = all;
          check(device, c, 9);
          c.aligned = false;
          check(device, c, 10);
          if (HasFailure()) return;
        }
}

// Groups of images: in GPUs' shared memory with one and several rows for a block, in strips of
// channels that are last in memory, kept and not kept, and too long or too few for either.
TEST(RowNormalization, TakesGroupsOfImages) {
  const RowLayout layouts[] = {
      {3, 1, 16, 784, 4}, {2, 1, 6, 49, 1},    {700, 1, 8, 64, 2},  {1, 1, 64, 3136, 8},
      {2, 1, 268, 4, 2},  {2, 1, 2, 8200, 2},  {2, 1, 4, 40000, 2}, {1, 1, 3, 90001, 1},
      {2, 784, 64, 1, 8}, {140, 49, 32, 1, 4}, {3, 3136, 16, 1, 2}, {150, 9, 30, 1, 10},
      {2, 400, 96, 1, 2}, {1, 20000, 9, 1, 3}, {3, 130, 520, 1, 1}, {132, 3300, 8, 1, 2}};
  for (const Device device : first_devices())
    for (const RowLayout& layout : layouts)
      for (const Dtype dtype : kFloats)
        for (const bool all : {true, false}) {
          if (layout.rows() * layout.size() > 250000 && (!all || dtype != Dtype::kFloat32))
            continue;
          Case c;
          c.layout = layout, c.dtype = dtype;
          c.gamma = c.beta = c.g_beta = all;
          c.accumulate = c.in_place = !all;
          check(device, c, 5);
          if (HasFailure()) return;
        }
}

// Equal calls give equal bits.
TEST(RowNormalization, GivesEqualBits) {
  for (const Device device : first_devices())
    for (const RowLayout& layout :
         {RowLayout{900, 1, 1024, 1, 1}, RowLayout{9, 1, 70, 3136, 70}, RowLayout{9, 1, 64, 784, 8},
          RowLayout{140, 49, 32, 1, 4}, RowLayout{1, 1, 3, 90001, 1}, RowLayout{2, 400, 96, 1, 2},
          RowLayout{20, 1, 20000, 1, 1}}) {
      Case c;
      c.layout = layout, c.dtype = Dtype::kBFloat16;
      const Data first(c, device, 7), second(c, device, 7);
      for (const Data* d : {&first, &second}) {
        kernels::row_normalization(device, {layout, &d->x.array, &d->gamma.array, &d->beta.array,
                                            1e-3, true, &d->y.array, &d->statistics});
        kernels::row_normalization_grad(
            device, {layout, &d->x.array, &d->gy.array, &d->gamma.array, &d->statistics, true,
                     &d->gx.array, &d->g_gamma.array, &d->g_beta.array});
      }
      const auto same = [&](const Numbers& a, const Numbers& b) {
        return testing::numbers_of(a.array) == testing::numbers_of(b.array);
      };
      EXPECT_TRUE(same(first.y, second.y) && same(first.gx, second.gx)) << device;
      EXPECT_TRUE(same(first.g_gamma, second.g_gamma) && same(first.g_beta, second.g_beta))
          << device;
    }
}

// The deviation is found where it is a ten-thousandth of the mean, and a constant row is 0.
TEST(RowNormalization, SurvivesALargeMean) {
  for (const Device device : first_devices())
    for (const RowLayout& layout :
         {RowLayout{20, 1, 500, 1, 1}, RowLayout{5, 1, 5000, 1, 1}, RowLayout{3, 1, 20000, 1, 1},
          RowLayout{3, 1, 6, 300, 6}, RowLayout{3, 1, 6, 300, 2}, RowLayout{3, 300, 6, 1, 2}}) {
      Case c;
      c.layout = layout;
      c.offset = 1e4;
      check(device, c, 5);
      c.spread = 0;
      check(device, c, 6);
    }
}

// The results do not depend on the number of threads.
TEST(RowNormalization, IsTheSameOnAnyNumberOfThreads) {
  const int before = cpu_threads();
  std::vector<std::vector<double>> results;
  for (const int threads : {1, 3}) {
    set_cpu_threads(threads);
    std::vector<double> all;
    for (const RowLayout& layout :
         {RowLayout{900, 1, 300, 1, 1}, RowLayout{9, 1, 8, 3000, 2}, RowLayout{9, 3000, 8, 1, 2}}) {
      Case c;
      c.layout = layout;
      const Data d(c, cpu(), 7);
      kernels::row_normalization(cpu(), {layout, &d.x.array, &d.gamma.array, &d.beta.array, 1e-3,
                                         true, &d.y.array, &d.statistics});
      kernels::row_normalization_grad(
          cpu(), {layout, &d.x.array, &d.gy.array, &d.gamma.array, &d.statistics, true, &d.gx.array,
                  &d.g_gamma.array, &d.g_beta.array});
      for (const Array& a : {d.y.array, d.gx.array, d.g_gamma.array, d.g_beta.array})
        for (const double v : testing::numbers_of(a)) all.push_back(v);
    }
    results.push_back(std::move(all));
  }
  set_cpu_threads(before);
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace catena
