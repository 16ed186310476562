// The slots with which ranks normalize together, against those for one batch: random batches, in
// parts of different size.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"
#include "catena/kernels/normalization.h"
#include "catena/testing.h"

namespace catena {
namespace {

// A batch (outer, channels, inner), cut along its first axis.
struct Parts {
  Array x, gy, gamma, beta, residual;
  std::vector<int64_t> cuts;  // the first row of each part, and the number of rows
  ChannelLayout layout(int64_t rows) const { return {rows, x.shape()[1], x.shape()[2]}; }
  size_t count() const { return cuts.size() - 1; }
  Array of(const Array& a, size_t i) const { return a(Slice(cuts[i], cuts[i + 1])); }
  int64_t rows(size_t i) const { return cuts[i + 1] - cuts[i]; }
  Dtype channel_dtype() const {
    return x.dtype() == Dtype::kFloat64 ? Dtype::kFloat64 : Dtype::kFloat32;
  }
  Array channel() const {
    return Array::uninitialized({x.shape()[1]}, channel_dtype(), x.device());
  }
};

Parts random_parts(std::mt19937& random, Dtype dtype, Device device, double offset) {
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const int64_t inner = pick(0, 1) ? 1 : pick(2, 70);
  const int64_t channels = pick(0, 1) ? 8 * pick(1, 5) : pick(1, 40);
  const int64_t outer = pick(3, inner == 1 ? 400 : 30);
  const uint64_t seed = uint64_t(pick(1, 1000));
  const auto draw = [&](const Shape& shape, double low, double high, Dtype of, uint64_t with) {
    return testing::random_array(shape, low, high, of, device, with);
  };
  Parts p;
  const Shape batch{outer, channels, inner};
  p.x = draw(batch, offset - 1, offset + 1, dtype, seed);
  p.gy = draw(batch, -1, 1, dtype, seed + 1);
  p.residual = draw(batch, -1, 1, dtype, seed + 2);
  p.gamma = draw({channels}, 0.5, 2, p.channel_dtype(), seed + 3);
  p.beta = draw({channels}, -1, 1, p.channel_dtype(), seed + 4);
  p.cuts = {0, pick(1, outer - 2), outer - 1, outer};
  return p;
}

struct Statistics {
  Array mean, rest, inverse, running_mean, running_variance, count;
  explicit Statistics(const Parts& p)
      : mean(p.channel()),
        rest(p.channel()),
        inverse(p.channel()),
        running_mean(zeros_like(mean)),
        running_variance(ones_like(mean)),
        count(zeros({1}, {p.channel_dtype(), p.x.device()})) {}
};

Statistics merged(const Parts& p, double eps) {
  Arrays moments;
  for (size_t i = 0; i < p.count(); ++i) {
    const Array x = p.of(p.x, i);
    moments.push_back(
        Array::uninitialized({moments_size(p.x.shape()[1])}, p.channel_dtype(), p.x.device()));
    kernels::batch_moments(x.device(), {p.layout(p.rows(i)), &x, &moments.back()});
  }
  Statistics s(p);
  const Array all = stack(moments);
  kernels::merge_moments(p.x.device(), {&all, eps, &s.mean, &s.rest, &s.inverse, &s.count,
                                        &s.running_mean, &s.running_variance, 0.5});
  return s;
}

// How far apart two arrays may be, relative to the largest number.
void expect_near(const Array& got, const Array& expected, double share, const char* what) {
  const Array wide = expected.astype(Dtype::kFloat64);
  const double largest = std::max(1e-3, amax(absolute(wide)).item<double>());
  EXPECT_EQ(testing::difference(got.astype(Dtype::kFloat64), wide, share * largest, 0), "") << what;
}

struct Forward {
  Array y;
  Kept<BatchNormalizationGradCall> kept;
};

void compare(const Parts& p, bool relu, bool residual, double share) {
  constexpr double kEps = 1e-5;
  const Array* null = nullptr;
  Statistics whole(p);
  const Array y = zeros_like(p.x), gx = zeros_like(p.x), g_residual = zeros_like(p.x);
  const Array g_gamma = p.channel(), g_beta = p.channel();
  Kept<BatchNormalizationGradCall> kept;
  const ChannelLayout all = p.layout(p.x.shape()[0]);
  kernels::batch_normalization(
      p.x.device(), {all, &p.x, &p.gamma, &p.beta, residual ? &p.residual : null, kEps, relu, &y,
                     &whole.mean, &whole.inverse, &whole.running_mean, &whole.running_variance, 0.5,
                     nullptr, &kept, &whole.rest});
  kernels::batch_normalization_grad(
      p.x.device(), {all, &p.x, &p.gy, relu ? &y : null, &p.gamma, &whole.mean, &whole.inverse,
                     false, &gx, relu ? &g_residual : null, &g_gamma, &g_beta, false, false, &kept,
                     relu && !residual, &p.beta, &whole.rest});

  const Statistics s = merged(p, kEps);
  expect_near(s.mean + s.rest, whole.mean + whole.rest, share, "mean");
  expect_near(s.inverse, whole.inverse, share, "inverse deviation");
  expect_near(s.running_mean, whole.running_mean, share, "running mean");
  expect_near(s.running_variance, whole.running_variance, share, "running variance");
  EXPECT_EQ(s.count.to_cpu().astype(Dtype::kFloat64).item<double>(), double(all.count()));

  const Array sums = zeros({2 * all.channels}, {p.channel_dtype(), p.x.device()});
  Array gamma_sum = zeros_like(g_gamma), beta_sum = zeros_like(g_beta);
  std::vector<Forward> made(p.count());
  // The call for a part, which wants nothing yet; x and gy outlive it.
  const auto gradient_of = [&](size_t i, const Array& x, const Array& gy) {
    BatchNormalizationGradCall call{
        p.layout(p.rows(i)), &x,   &gy, relu ? &made[i].y : null, &p.gamma, &s.mean,
        &s.inverse,          false};
    call.gx = call.g_residual = call.g_gamma = call.g_beta = nullptr;
    call.kept = &made[i].kept;
    call.y_follows_from_x = relu && !residual;
    call.beta = &p.beta;
    call.mean_rest = &s.rest;
    return call;
  };
  for (size_t i = 0; i < p.count(); ++i) {
    const Array x = p.of(p.x, i), gy = p.of(p.gy, i), r = p.of(p.residual, i);
    made[i].y = zeros_like(x);
    kernels::fixed_batch_normalization(
        x.device(),
        {p.layout(p.rows(i)), &x, &p.gamma, &p.beta, residual ? &r : null, &s.mean, nullptr, kEps,
         relu, &made[i].y, relu && residual ? &made[i].kept : nullptr, &s.inverse, &s.rest});
    const Array own = zeros_like(sums), own_gamma = p.channel(), own_beta = p.channel();
    BatchNormalizationGradCall call = gradient_of(i, x, gy);
    call.g_gamma = &own_gamma;
    call.g_beta = &own_beta;
    call.sums = &own;
    kernels::batch_normalization_grad(x.device(), call);
    sums += own;
    gamma_sum += own_gamma;
    beta_sum += own_beta;
  }
  const double root = std::sqrt(double(all.count()));
  expect_near(gamma_sum, g_gamma, share * root, "g_gamma");
  expect_near(beta_sum, g_beta, share * root, "g_beta");
  const double batch_share = std::max(share, p.x.itemsize() == 2 ? 1e-2 : 0.0);
  for (size_t i = 0; i < p.count(); ++i) {
    const Array x = p.of(p.x, i), gy = p.of(p.gy, i), own = zeros_like(x), masked = zeros_like(x);
    expect_near(made[i].y, p.of(y, i), batch_share, "y");
    BatchNormalizationGradCall call = gradient_of(i, x, gy);
    call.gx = &own;
    call.g_residual = relu ? &masked : null;
    // As if this part counted three times, its sums too.
    const Array weighted = sums * 3.0;
    call.given_sums = &weighted;
    call.given_count = &s.count;
    call.sums_weight = 3;
    kernels::batch_normalization_grad(x.device(), call);
    expect_near(own, p.of(gx, i), 4 * batch_share, "gx");
    if (relu) expect_near(masked, p.of(g_residual, i), batch_share, "g_residual");
  }
}

class NormalizationOverRanks : public ::testing::TestWithParam<Device> {};

TEST_P(NormalizationOverRanks, PartsGiveWhatTheWholeGives) {
  std::mt19937 random(3);
  const std::pair<Dtype, double> dtypes[] = {{Dtype::kFloat32, 2e-5},
                                             {Dtype::kFloat64, 1e-12},
                                             {Dtype::kFloat16, 1e-3},
                                             {Dtype::kBFloat16, 1e-3}};
  for (const auto& [dtype, share] : dtypes)
    for (int i = 0; i < 12; ++i) {
      SCOPED_TRACE(message(dtype, " case ", i));
      const Parts p = random_parts(random, dtype, GetParam(), i % 3 == 0 ? 0.5 : 0);
      compare(p, i % 2 == 1, i % 4 >= 2, share);
      if (::testing::Test::HasFailure()) return;
    }
}

// The squares would lose all digits: a mean of 1e4 and a deviation of 0.01 in float32.
TEST_P(NormalizationOverRanks, KeepsTheDigitsOfSmallDeviations) {
  Parts p;
  const Device device = GetParam();
  const Shape batch{40, 3, 30};
  p.x = testing::random_array(batch, 1e4 - 0.02, 1e4 + 0.02, Dtype::kFloat32, device, 1);
  p.gamma = ones({3}, {Dtype::kFloat32, device});
  p.cuts = {0, 7, 20, 40};
  const Statistics s = merged(p, 0);
  const Array wide = p.x.astype(Dtype::kFloat64);
  const Array mean = catena::mean(wide, {0, 2}), deviation = sqrt(var(wide, {0, 2}));
  expect_near((s.mean.astype(Dtype::kFloat64) + s.rest.astype(Dtype::kFloat64)) - mean,
              zeros_like(mean), 1e-4, "mean");
  expect_near(s.inverse.astype(Dtype::kFloat64) * deviation, ones_like(mean), 1e-5, "deviation");
}

TEST_P(NormalizationOverRanks, FewerThanTwoNumbersHaveNoVariance) {
  const Device device = GetParam();
  for (const double count : {0.0, 1.0}) {
    const Array moments = zeros({2, moments_size(2)}, {Dtype::kFloat32, device});
    moments(0, 7).fill(count);
    const Array mean = zeros({2}, {Dtype::kFloat32, device}), rest = mean.copy(),
                inverse = mean.copy(), n = zeros({1}, {Dtype::kFloat32, device});
    kernels::merge_moments(device, {&moments, 0, &mean, &rest, &inverse, &n});
    EXPECT_TRUE(std::isnan(mean(0).item<double>()));
    EXPECT_TRUE(std::isnan(inverse(1).item<double>()));
  }
}

INSTANTIATE_TEST_SUITE_P(All, NormalizationOverRanks, ::testing::ValuesIn(testing::devices()),
                         [](const auto& info) {
                           std::string name = info.param.name();
                           for (char& c : name)
                             if (c == ':') c = '_';
                           return name;
                         });

}  // namespace
}  // namespace catena
