// Rounding, replacing, divisors and other element-wise numerics: numbers from NumPy.
#include <cmath>
#include <limits>

#include "array/devices.h"
#include "catena/array/logic.h"
#include "catena/array/math.h"
#include "catena/array/numeric.h"

namespace catena {
namespace {

using namespace test;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class Numeric : public OnDevice {
 protected:
  // Equal numbers within rounding, NaN where NaN is expected.
  void expect_close(const Array& got, const V& expected) {
    EXPECT_TRUE(allclose(got.ravel().to(cpu()), array(expected, cpu()), 1e-12, 1e-14, true)) << got;
  }
};

TEST_P(Numeric, RoundingAndReplacing) {
  EXPECT_EQ(values(round(numbers({0.5, 1.5, -2.5}))), (V{0, 2, -2}));
  expect_close(round(numbers({1.25, 3.14159}), 1), {1.2, 3.1});
  EXPECT_EQ(values(around(numbers({1250, 1350}), -2)), (V{1200, 1400}));
  EXPECT_EQ(values(round(ints({15, 25, 149}), -1)), (V{20, 20, 150}));
  EXPECT_EQ(round(ints({15}), -1).dtype(), Dtype::kInt64);
  EXPECT_EQ(values(round(ints({15}), 2)), (V{15}));
  const Array out = zeros({1}, {Dtype::kFloat32, GetParam()});
  round(numbers({1.26}), 1, out);
  EXPECT_EQ(out.to_vector<float>()[0], 1.3f);
  const Array holes = numbers({NAN, INFINITY, -INFINITY, 2});
  EXPECT_EQ(values(nan_to_num(holes, 1, 5, -5)), (V{1, 5, -5, 2}));
  EXPECT_EQ(values(nan_to_num(holes.astype(Dtype::kFloat16))), (V{0, 65504, -65504, 2}));
  EXPECT_EQ(values(nan_to_num(ints({3}))), (V{3}));
  expect_close(heaviside(numbers({-1, 0, 2, NAN}), 0.5), {0, 0.5, 1, kNan});
  EXPECT_EQ(heaviside(numbers({1}).astype(Dtype::kFloat32), 1).dtype(), Dtype::kFloat32);
}

TEST_P(Numeric, Divisors) {
  EXPECT_EQ(values(gcd(ints({12, -18, 0, 7}), 6)), (V{6, 6, 6, 1}));
  EXPECT_EQ(values(gcd(ints({0, 5}), 0)), (V{0, 5}));
  EXPECT_EQ(values(lcm(ints({4, 6, 0, -3}), ints({6, 4, 0, 5}))), (V{12, 12, 0, 15}));
  EXPECT_EQ(values(lcm(ints({4, 6}).reshape({2, 1}), ints({3, 8}))), (V{12, 8, 6, 24}));
  const Array fibonacci = ints({7540113804746346429}), before = ints({4660046610375530309});
  EXPECT_EQ(gcd(fibonacci, before).item<int64_t>(), 1);  // Euclid's longest way
  EXPECT_EQ(gcd(ints({12}).astype(Dtype::kUInt8), 8).dtype(), Dtype::kUInt8);
  expect_contains(error_of<DtypeError>([&] { gcd(numbers({1}), 2); }), {"gcd", "float64"});
}

TEST(NumericOnCpu, DivisorsOfTheLowestInteger) {
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min();
  const Array a = array<int32_t>({6, 0, kLeast, 7}), b = full({4}, kLeast, dtype::int32);
  EXPECT_EQ(gcd(a, b).dtype(), dtype::int32);
  EXPECT_EQ(gcd(a, b).to_vector<int32_t>(), (std::vector<int32_t>{2, kLeast, kLeast, 1}));
  EXPECT_EQ(gcd(b, a).to_vector<int32_t>(), (std::vector<int32_t>{2, kLeast, kLeast, 1}));
  EXPECT_EQ(lcm(a, b).to_vector<int32_t>(), (std::vector<int32_t>{kLeast, 0, kLeast, kLeast}));
  EXPECT_EQ(lcm(array<int8_t>({-128}), array<int8_t>({6})).item<int>(), -128);
}

TEST_P(Numeric, ElementwiseNumerics) {
  expect_close(float_power(ints({2, 3}), -1), {0.5, 1.0 / 3});
  EXPECT_EQ(values(fix(numbers({-1.5, 1.5}))), (V{-1, 1}));
  expect_close(sinc(numbers({0, 1, 0.5})), {1, std::sin(M_PI) / M_PI, 2 / M_PI});
  EXPECT_EQ(values(isposinf(numbers({INFINITY, -INFINITY, NAN, 1}))), (V{1, 0, 0, 0}));
  EXPECT_EQ(values(isneginf(numbers({INFINITY, -INFINITY, NAN, 1}))), (V{0, 1, 0, 0}));
  EXPECT_EQ(sinc(ints({1})).dtype(), Dtype::kFloat64);
}

CATENA_ON_DEVICES(Numeric);

}  // namespace
}  // namespace catena
