// Softmax and cross entropy of the CPU backend against double, and the search for what is not
// finite.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "catena/array/creation.h"
#include "catena/kernels/loss.h"
#include "catena/kernels/optimizer.h"
#include "catena/kernels/softmax.h"

namespace catena {
namespace {

const std::vector<Dtype> kFloats = {Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat32,
                                    Dtype::kFloat64};

double tolerance(Dtype d) {
  return d == Dtype::kFloat64   ? 1e-14
         : d == Dtype::kFloat32 ? 2e-6
         : d == Dtype::kFloat16 ? 2e-3
                                : 1.6e-2;
}

Array normal(Dtype dtype, const Shape& shape, unsigned seed) {
  std::mt19937 engine(seed);
  Array a = Array::uninitialized(shape, Dtype::kFloat64, cpu(0));
  for (int64_t i = 0; i < a.size(); ++i)
    a.data<double>()[i] = 2 * std::normal_distribution<double>()(engine);
  return a.astype(dtype);
}
Array uninitialized(Dtype d, const Shape& shape) { return Array::uninitialized(shape, d, cpu(0)); }

struct Case {
  int64_t outer, classes, inner;
};
const std::vector<Case> kCases = {{3, 10, 1}, {1, 1, 1}, {2, 37, 5}, {200, 130, 1}, {2, 16, 300}};

// Calls f(first element, step) for every sample.
template <class F>
void for_samples(const Case& c, const F& f) {
  for (int64_t s = 0; s < c.outer * c.inner; ++s)
    f(s, s / c.inner * c.classes * c.inner + s % c.inner);
}

class CpuSoftmax : public ::testing::TestWithParam<Dtype> {};

TEST_P(CpuSoftmax, ForwardAndGradient) {
  const Dtype d = GetParam();
  for (const Case& c : kCases) {
    const Shape shape{c.outer, c.classes, c.inner};
    const Array x = normal(d, shape, 1), gy = normal(d, shape, 2);
    for (bool log : {false, true}) {
      const Array y = uninitialized(d, shape), gx = uninitialized(d, shape);
      kernels::softmax(cpu(0), {x, log, y});
      kernels::softmax_grad(cpu(0), {y, gy, log, gx});
      const auto vx = x.to_vector<double>(), vy = y.to_vector<double>(),
                 vg = gy.to_vector<double>(), vgx = gx.to_vector<double>();
      for_samples(c, [&](int64_t, int64_t first) {
        double sum = 0, dot = 0, total = 0;
        for (int64_t k = 0; k < c.classes; ++k) {
          const size_t at = size_t(first + k * c.inner);
          sum += std::exp(vx[at]);
          dot += vy[at] * vg[at];
          total += vg[at];
        }
        for (int64_t k = 0; k < c.classes; ++k) {
          const size_t at = size_t(first + k * c.inner);
          const double expected = log ? vx[at] - std::log(sum) : std::exp(vx[at]) / sum;
          ASSERT_NEAR(vy[at], expected, tolerance(d) * (1 + std::fabs(expected)));
          const double gradient = log ? vg[at] - std::exp(vy[at]) * total : vy[at] * (vg[at] - dot);
          ASSERT_NEAR(
              vgx[at], gradient,
              tolerance(d) * (1 + std::fabs(gradient) + (log ? std::fabs(total) : std::fabs(dot))));
        }
      });
    }
  }
}

TEST_P(CpuSoftmax, CrossEntropyAndGradient) {
  const Dtype d = GetParam(), compute = d == Dtype::kFloat64 ? d : Dtype::kFloat32;
  for (const Case& c : kCases) {
    for (bool normalize : {false, true}) {
      const Array x = normal(d, {c.outer, c.classes, c.inner}, 3),
                  t = uninitialized(Dtype::kInt32, {c.outer, c.inner});
      for (int64_t s = 0; s < t.size(); ++s)
        t.data<int32_t>()[s] = s % 4 == 3 ? -1 : int32_t(s * 7 % c.classes);
      const Array lse = uninitialized(compute, {2, c.outer, c.inner}),
                  count = uninitialized(compute, {}), loss = uninitialized(d, {});
      const CrossEntropyCall call{&x, &t, -1, normalize, &lse, &count, &loss};
      kernels::softmax_cross_entropy(cpu(0), call);
      const Array gloss = full({}, 2, d), gx = uninitialized(d, x.shape());
      kernels::softmax_cross_entropy_grad(cpu(0), {call, gloss, gx});
      const auto vx = x.to_vector<double>(), vgx = gx.to_vector<double>(),
                 vlse = lse.to_vector<double>();
      double expected = 0, valid = 0;
      for (int64_t s = 0; s < t.size(); ++s) valid += t.data<int32_t>()[s] >= 0;
      const double divisor = normalize ? valid : double(c.outer);
      for_samples(c, [&](int64_t s, int64_t first) {
        const int32_t label = t.data<int32_t>()[s];
        double sum = 0;
        for (int64_t k = 0; k < c.classes; ++k) sum += std::exp(vx[size_t(first + k * c.inner)]);
        const double whole = vlse[size_t(s)] + vlse[size_t(s + c.outer * c.inner)];
        ASSERT_NEAR(whole, std::log(sum), 4e-6 * (1 + std::fabs(std::log(sum))));
        if (label >= 0) expected += std::log(sum) - vx[size_t(first + label * c.inner)];
        for (int64_t k = 0; k < c.classes; ++k) {
          const double p = std::exp(vx[size_t(first + k * c.inner)]) / sum;
          const double gradient = label < 0 ? 0 : 2 * (p - (k == label)) / divisor;
          ASSERT_NEAR(vgx[size_t(first + k * c.inner)], gradient,
                      tolerance(d) * 4 * std::max(1e-3, std::fabs(gradient)));
        }
      });
      EXPECT_NEAR(loss.item<double>(), expected / divisor, tolerance(d) * (1 + expected / divisor));
      EXPECT_EQ(count.item<double>(), divisor);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, CpuSoftmax, ::testing::ValuesIn(kFloats),
                         [](const auto& p) { return std::string(name(p.param)); });

TEST(CpuSoftmaxEdges, LargeValuesAndWrongLabels) {
  const Array x = array(std::vector<float>{1000, 0, -1000, 88}, {1, 4, 1}),
              y = uninitialized(Dtype::kFloat32, {1, 4, 1});
  kernels::softmax(cpu(0), {x, false, y});
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 0, 0, 0}));
  kernels::softmax(cpu(0), {x, true, y});
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{0, -1000, -2000, -912}));
  const Array t = full({1, 1}, 4, Dtype::kInt32), lse = uninitialized(Dtype::kFloat32, {2, 1, 1}),
              count = uninitialized(Dtype::kFloat32, {}), loss = uninitialized(Dtype::kFloat32, {});
  kernels::softmax_cross_entropy(cpu(0), {&x, &t, -1, true, &lse, &count, &loss});
  EXPECT_TRUE(std::isnan(loss.item<float>()));
  kernels::softmax_cross_entropy(cpu(0), {&x, &t, 4, true, &lse, &count, &loss});
  EXPECT_EQ(loss.item<float>(), 0);
}

TEST(CpuNonFinite, IsFoundWhereverItIs) {
  for (const Dtype d : kFloats) {
    const Array finite = normal(d, {70001}, 3);
    for (const double bad : {double(INFINITY), -double(INFINITY), double(NAN)}) {
      for (const int64_t at : {0, 31, 70000}) {
        const Array values = finite.copy(), found = zeros({}, Dtype::kFloat64);
        values[1].fill(0);
        kernels::find_nonfinite(cpu(0), {&values, &found});
        EXPECT_EQ(found.item<double>(), 0) << d;
        values[at].fill(bad);
        kernels::find_nonfinite(cpu(0), {&values, &found});
        EXPECT_EQ(found.item<double>(), 1) << d << " " << bad << " at " << at;
      }
    }
  }
  const Array none = zeros({0}), found = ones({}, Dtype::kFloat64);
  kernels::find_nonfinite(cpu(0), {&none, &found});
  EXPECT_EQ(found.item<double>(), 1) << "found stays";
}

}  // namespace
}  // namespace catena
