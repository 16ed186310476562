// The sigmoid and the tanh of an LSTM's step on the CPU, which in float are loops of their own:
// digits, saturation, special values, rows of every length, and results in the operands' place.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/cpu/loops/levels.h"
#include "catena/array/array.h"
#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/array/random.h"
#include "catena/core/config.h"
#include "catena/kernels/rnn.h"

namespace catena {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Dense where the functions bend, and powers of two of all sizes.
std::vector<float> points() {
  std::vector<float> x;
  for (int i = -9500; i <= 9500; ++i) x.push_back(float(i) * 1.0003e-2F);
  for (int e = -149; e < 128; ++e)
    for (const float sign : {-1.0F, 1.0F}) x.push_back(std::ldexp(sign, e));
  x.insert(x.end(), {kInf, -kInf, 0.0F, -0.0F});
  return x;
}
double unit(double x) {
  int exponent = -200;
  if (x != 0) std::frexp(x, &exponent);
  return std::ldexp(1.0, std::max(exponent - 24, -149));
}
// Without fused multiply-add the exponent is rounded.
double units(double x) {
  return host::level_of_tables() >= 3 ? 4 : 4 + 2 * std::min(std::fabs(x), 100.0);
}

struct Step {
  Array c, h;
};
// One sequence whose gates are the constants, but for one block.
Step step(const std::vector<float>& varied, int block, const std::vector<float>& constants) {
  const int64_t n = int64_t(varied.size());
  std::vector<Array> blocks;
  for (int k = 0; k < 4; ++k)
    blocks.push_back(k == block ? array(varied) : full({n}, constants[size_t(k)], dtype::float32));
  const Array gates = concatenate(blocks).reshape({1, 4 * n});
  const Step s{empty({1, n}, dtype::float32), empty({1, n}, dtype::float32)};
  kernels::lstm_cell(cpu(0), {&gates, nullptr, nullptr, &s.c, &s.h});
  return s;
}

TEST(CpuLstmCell, TanhKeepsItsDigits) {
  const std::vector<float> x = points(), c = step(x, 0, {0, 200, 0, 200}).c.to_vector<float>();
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = std::tanh(double(x[i]));
    ASSERT_LE(std::fabs(c[i] - expected), units(2 * x[i]) * unit(expected)) << x[i];
    ASSERT_LE(std::fabs(c[i]), 1) << x[i];
  }
}

TEST(CpuLstmCell, SigmoidKeepsItsDigits) {
  const std::vector<float> x = points(), c = step(x, 1, {200, 0, 0, 200}).c.to_vector<float>();
  for (size_t i = 0; i < x.size(); ++i) {
    const double e = std::exp(-std::fabs(double(x[i]))), expected = (x[i] < 0 ? e : 1) / (1 + e);
    ASSERT_LE(std::fabs(c[i] - expected), units(x[i]) * unit(expected)) << x[i];
    ASSERT_LE(c[i], 1) << x[i];
  }
}

TEST(CpuLstmCell, NaNPassesThroughEachGate) {
  const float nan = std::nanf("");
  for (int block = 0; block < 4; ++block) {
    const Step s = step({0.5F, nan, 0.5F}, block, {0.5F, 0.5F, 0.5F, 0.5F});
    const auto h = s.h.to_vector<float>(), c = s.c.to_vector<float>();
    EXPECT_TRUE(std::isfinite(h[0]) && std::isnan(h[1]) && std::isfinite(h[2])) << block;
    // o is not in c; f times 0 is NaN still.
    EXPECT_EQ(std::isnan(c[1]), block != 3) << block;
  }
}

bool same_bits(const Array& a, const Array& b) {
  return a.nbytes() == b.nbytes() &&
         std::memcmp(a.raw_data(), b.raw_data(), size_t(a.nbytes())) == 0;
}

// A cell's results depend neither on its place in the row nor on whether they replace operands.
TEST(CpuLstmCell, RowsOfEveryLengthInPlaceOrNot) {
  const int64_t rows = 3;
  for (const Dtype d : {Dtype::kFloat16, Dtype::kFloat32, Dtype::kFloat64})
    for (int64_t n = 1; n <= 50; ++n) {
      SCOPED_TRACE(message(n, " cells in ", d));
      const auto draw = [&](int64_t columns) {
        return random::uniform({rows, columns}, -3, 3, Dtype::kFloat32).astype(d);
      };
      const Array gates = draw(4 * n), before = draw(n), gh = draw(n);
      const Array c = empty({rows, n}, d), h = empty({rows, n}, d),
                  active = empty({rows, 4 * n}, d);
      kernels::lstm_cell(cpu(0), {&gates, &before, &active, &c, &h});
      const Array gx = empty({rows, 4 * n}, d), g_prev = empty({rows, n}, d);
      kernels::lstm_cell_grad(cpu(0),
                              {&gates, &before, &c, &gh, nullptr, nullptr, &gx, &g_prev, true});
      const Array own_gates = gates.copy(), own_c = before.copy(), own_h = empty({rows, n}, d);
      kernels::lstm_cell(cpu(0), {&own_gates, &own_c, &own_gates, &own_c, &own_h});
      EXPECT_TRUE(same_bits(own_gates, active));
      EXPECT_TRUE(same_bits(own_c, c));
      EXPECT_TRUE(same_bits(own_h, h));
      // The first and the last cell alone.
      for (const int64_t at : {int64_t(0), n - 1}) {
        const auto cell = [&](const Array& a) { return a(Slice(1, 2), Slice(at, at + 1)).copy(); };
        const auto four = [&](const Array& a) {
          return a(1).reshape({4, n})(ellipsis, Slice(at, at + 1)).copy().reshape({1, 4});
        };
        const Array one_gates = four(gates), one_before = cell(before), one_gh = cell(gh);
        const Array one_c = empty({1, 1}, d), one_h = empty({1, 1}, d);
        kernels::lstm_cell(cpu(0), {&one_gates, &one_before, nullptr, &one_c, &one_h});
        EXPECT_TRUE(same_bits(one_c, cell(c)));
        EXPECT_TRUE(same_bits(one_h, cell(h)));
        const Array one_gx = empty({1, 4}, d), one_prev = empty({1, 1}, d);
        kernels::lstm_cell_grad(cpu(0), {&one_gates, &one_before, &one_c, &one_gh, nullptr, nullptr,
                                         &one_gx, &one_prev, true});
        EXPECT_TRUE(same_bits(one_gx, four(gx)));
        EXPECT_TRUE(same_bits(one_prev, cell(g_prev)));
      }
    }
}

}  // namespace
}  // namespace catena
