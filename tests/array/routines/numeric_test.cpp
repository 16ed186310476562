// Rounding, replacing, divisors and other element-wise numerics: numbers from NumPy.
#include <limits>

#include "array/devices.h"
#include "catena/array/numeric.h"

namespace catena {
namespace {

using namespace test;

class Numeric : public OnDevice {};

// Values are cases of tests/oracle.
TEST_P(Numeric, NumbersAreOperandsAndResultsGoIntoArrays) {
  EXPECT_EQ(values(around(numbers({1250, 1350}), -2)), (V{1200, 1400}));
  const Array out = zeros({1}, {Dtype::kFloat32, GetParam()});
  round(numbers({1.26}), 1, out);
  EXPECT_EQ(out.to_vector<float>()[0], 1.3f);
  EXPECT_EQ(heaviside(numbers({1}).astype(Dtype::kFloat32), 1).dtype(), Dtype::kFloat32);
  EXPECT_EQ(sinc(ints({1})).dtype(), Dtype::kFloat64);
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

CATENA_ON_DEVICES(Numeric);

}  // namespace
}  // namespace catena
