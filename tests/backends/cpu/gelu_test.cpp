// GELU and its gradient on the CPU, whose loops in float are their own: digits everywhere, tails
// included, special values, 16-bit floats, and the same bits in every layout and number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/cpu/loops/levels.h"
#include "catena/array/array.h"
#include "catena/array/creation.h"
#include "catena/core/config.h"
#include "catena/core/half.h"
#include "catena/kernels/elementwise.h"

namespace catena {
namespace {

double distribution(double x) { return 0.5 * std::erfc(x * -0.70710678118654752440); }
double density(double x) { return 0.39894228040143267794 * std::exp(-0.5 * x * x); }
double gelu_of(double x) { return x * distribution(x); }

// One unit in the last of `digits` binary digits of x; the least one is that of float's subnormals.
double unit(double x, int digits) {
  int exponent = -200;
  if (x != 0) std::frexp(x, &exponent);
  return std::ldexp(1.0, std::max(exponent - digits, -149));
}
// What the result may lack: the exponent of the tail is x^2 rounded once, without fused
// multiply-add three times.
double units(double x) {
  return 6 + (host::level_of_tables() >= 3 ? 1 : 3) * std::min(x * x, 200.0);
}

void run(const char* name, const std::vector<Array>& inputs, const Array& output) {
  ElementwiseCall call{elementwise_op(name), output.dtype(), int(inputs.size()), {}, {}, &output};
  for (size_t k = 0; k < inputs.size(); ++k) call.arrays[k] = &inputs[k];
  kernels::elementwise(cpu(0), call);
}
Array gelu(const Array& x) {
  const Array y = Array::uninitialized(x.shape(), x.dtype(), cpu(0));
  run("gelu", {x}, y);
  return y;
}
Array gelu_grad(const Array& gy, const Array& x) {
  const Array gx = Array::uninitialized(x.shape(), x.dtype(), cpu(0));
  run("gelu_grad", {gy, x}, gx);
  return gx;
}
bool same_bits(const Array& a, const Array& b) {
  const Array one = a.contiguous(), other = b.contiguous();
  return one.nbytes() == other.nbytes() &&
         std::memcmp(one.raw_data(), other.raw_data(), size_t(one.nbytes())) == 0;
}

// Dense where the function bends, and the powers of two from the least float to the largest.
std::vector<float> points() {
  std::vector<float> x;
  for (int i = -14500; i <= 14500; ++i) x.push_back(float(i) * 1.0003e-3F);
  for (int e = -149; e < 128; ++e)
    for (const float sign : {-1.0F, 1.0F}) x.push_back(std::ldexp(sign, e));
  return x;
}

TEST(CpuGelu, KeepsItsDigitsInTheTailsToo) {
  const std::vector<float> x = points(), y = gelu(array(x)).to_vector<float>();
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = gelu_of(x[i]);
    // A subnormal value of the distribution has lost digits before it is multiplied by x.
    const double slack = distribution(x[i]) < 1.2e-38 ? 16 * std::ldexp(1.0, -149) : 0;
    ASSERT_NEAR(y[i], expected, units(x[i]) * unit(expected, 24) + slack) << x[i];
  }
}

// Its two terms cancel in one place: the error is relative to the larger one.
TEST(CpuGelu, GradientIsRelativeToItsLargerTerm) {
  const std::vector<float> x = points();
  for (const float gy : {1.0F, -3.0F}) {
    const std::vector<float> gx =
        gelu_grad(full({int64_t(x.size())}, gy, dtype::float32), array(x)).to_vector<float>();
    for (size_t i = 0; i < x.size(); ++i) {
      const double below = distribution(x[i]), bend = x[i] == 0 ? 0 : x[i] * density(x[i]);
      const double largest = std::fabs(gy) * std::max(below, std::fabs(bend));
      const double bound = units(x[i]) * 6e-8 * largest + 1e-37;
      ASSERT_NEAR(gx[i], gy * (below + bend), bound) << gy << " at " << x[i];
    }
  }
}

TEST(CpuGelu, SpecialValuesAreThoseOfFloat64) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> x = {inf, -inf, std::nan(""), 0.0, -0.0, 3e38, -3e38, 1e-37, -1e-37};
  const auto expect_same = [&](const std::vector<double>& actual, const std::vector<double>& as,
                               Dtype d) {
    for (size_t i = 0; i < x.size(); ++i) {
      SCOPED_TRACE(message(x[i], " in ", d));
      if (std::isnan(as[i])) {
        EXPECT_TRUE(std::isnan(actual[i])) << actual[i];
      } else if (std::isinf(as[i]) || as[i] == 0) {
        EXPECT_EQ(actual[i], as[i]);
        EXPECT_TRUE(as[i] != 0 || x[i] != 0 || std::signbit(actual[i]) == std::signbit(as[i]));
      } else if (std::fabs(as[i]) < 3.3e38) {
        EXPECT_NEAR(actual[i] / as[i], 1, d == Dtype::kFloat32 ? 1e-5 : 8e-3);
      }
    }
  };
  const Array wide = array(x), ones_wide = ones_like(wide);
  const auto y = gelu(wide).to_vector<double>();
  const auto gx = gelu_grad(ones_wide, wide).to_vector<double>();
  for (const Dtype d : {Dtype::kFloat32, Dtype::kBFloat16}) {
    const Array narrow = wide.astype(d);
    expect_same(gelu(narrow).to_vector<double>(), y, d);
    expect_same(gelu_grad(ones_like(narrow), narrow).to_vector<double>(), gx, d);
  }
}

// Every number: rounded once, or next to it where the exact result is nearly between two. `half` is
// half a unit and what the shorter polynomials may add.
template <class T>
void expect_all_rounded(int digits, double half, int least) {
  std::vector<double> values;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    T value;
    value.bits = uint16_t(bits);
    if (std::isfinite(float(value))) values.push_back(double(float(value)));
  }
  const auto y = gelu(array(values).astype(dtype_of<T>)).template to_vector<double>();
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected = gelu_of(values[i]);
    int exponent = 0;
    std::frexp(expected, &exponent);
    const double bound = std::ldexp(half, std::max(exponent - digits, least));
    ASSERT_NEAR(y[i], expected, bound) << values[i];
  }
}
TEST(CpuGelu, OfSixteenBitsIsRoundedOnce) {
  expect_all_rounded<float16>(11, 0.6, -24);
  expect_all_rounded<bfloat16>(8, 0.6, -133);
}

// Every NaN of 16 bits, alone in its place and in a row.
template <class T>
void expect_nan_stays() {
  std::vector<uint16_t> patterns;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    T value;
    value.bits = uint16_t(bits);
    if (std::isnan(float(value))) patterns.push_back(value.bits);
  }
  const Array x = empty({int64_t(patterns.size()), 2}, dtype_of<T>);
  for (size_t i = 0; i < 2 * patterns.size(); ++i) x.data<T>()[i].bits = patterns[i / 2];
  const auto all_nan = [](const Array& y) {
    for (const double v : y.to_vector<double>())
      if (!std::isnan(v)) return false;
    return true;
  };
  const Array apart = x(ellipsis, Slice(0, 1)), g = ones_like(x);
  EXPECT_TRUE(all_nan(gelu(x)));
  EXPECT_TRUE(all_nan(gelu(apart)));
  EXPECT_TRUE(all_nan(gelu_grad(g, x)));
  EXPECT_TRUE(all_nan(gelu_grad(x, g)));
  EXPECT_TRUE(all_nan(gelu_grad(x, x)));
}
TEST(CpuGelu, NaNOfSixteenBitsStaysNaN) {
  expect_nan_stays<float16>();
  expect_nan_stays<bfloat16>();
}

TEST(CpuGelu, LayoutsAndThreadsDoNotChangeABit) {
  const int before = cpu_threads();
  for (const Dtype d : {Dtype::kFloat16, Dtype::kBFloat16, Dtype::kFloat32, Dtype::kFloat64}) {
    SCOPED_TRACE(name(d));
    const Array x = linspace(-9, 9, 64 * 1037).astype(d).reshape({64, 1037});
    const Array gy = linspace(2, -1, 64 * 1037).astype(d).reshape({64, 1037});
    set_cpu_threads(1);
    const Array y = gelu(x), gx = gelu_grad(gy, x);
    EXPECT_TRUE(same_bits(gelu(x.T()), y.T()));
    EXPECT_TRUE(same_bits(gelu_grad(gy.T(), x.T()), gx.T()));
    const auto odd = [](const Array& a) { return a(Slice(3, 60, 2), Slice(1, none, 3)); };
    EXPECT_TRUE(same_bits(gelu(odd(x)), odd(y)));
    EXPECT_TRUE(same_bits(gelu_grad(odd(gy), odd(x)), odd(gx)));
    for (int64_t n : {1, 15, 17, 33}) {
      const auto part = [n](const Array& a) { return a(5, Slice(0, n)); };
      EXPECT_TRUE(same_bits(gelu(part(x)), part(y))) << n;
      EXPECT_TRUE(same_bits(gelu_grad(part(gy), part(x)), part(gx))) << n;
    }
    set_cpu_threads(2);
    EXPECT_TRUE(same_bits(gelu(x), y));
    EXPECT_TRUE(same_bits(gelu_grad(gy, x), gx));
    EXPECT_EQ(gelu(zeros({0, 3}, d)).size(), 0);
    EXPECT_EQ(gelu_grad(zeros({0, 3}, d), zeros({0, 3}, d)).size(), 0);
  }
  set_cpu_threads(before);
}

}  // namespace
}  // namespace catena
