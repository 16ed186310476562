// The functors for 16-bit floats on GPUs, compiled for the host, against exact functions: every
// float16 and bfloat16.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/cuda/jit/compile/source.h"
#include "catena/core/half.h"

#define CATENA_FN inline
namespace narrow {
namespace catena::m {
inline float exp2(float x) { return std::exp2(x); }
inline float fabs(float x) { return std::fabs(x); }
}  // namespace catena::m
#include "device/scalar_narrow.h"
}  // namespace narrow
#undef CATENA_FN

namespace catena {
namespace {

constexpr double kError = 1e-4;  // a quarter of the least rounding of a float16, relative

double normal_below(double x) { return 0.5 * std::erfc(x * -0.70710678118654752440); }
double normal_density(double x) { return 0.39894228040143267794 * std::exp(-0.5 * x * x); }

template <class T>
std::vector<double> finite_values() {
  std::vector<double> values;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    T value;
    const auto word = static_cast<uint16_t>(bits);
    value.bits = word;
    if (std::isfinite(float(value))) values.push_back(double(float(value)));
  }
  return values;
}

class NarrowFunctors : public ::testing::Test {
 protected:
  NarrowFunctors() : values(finite_values<float16>()) {
    const std::vector<double> more = finite_values<bfloat16>();
    values.insert(values.end(), more.begin(), more.end());
  }
  std::vector<double> values;
};

TEST_F(NarrowFunctors, GeluIsRightInItsTailsToo) {
  for (const double x : values) {
    const double expected = x * normal_below(x);
    const double actual = double(narrow::catena::ops::Gelu16::apply(float(x)));
    ASSERT_NEAR(actual, expected, kError * std::fabs(expected) + 1e-38) << x;
  }
}

TEST_F(NarrowFunctors, GeluGradIsRelativeToItsLargerTerm) {
  for (const double x : values)
    for (const double gy : {1.0, -3.0}) {
      const double below = normal_below(x), bend = x * normal_density(x);
      const double largest = std::fabs(gy) * std::fmax(below, std::fabs(bend));
      const double actual = double(narrow::catena::ops::GeluGrad16::apply(float(gy), float(x)));
      if (std::fabs(x) > 1e15) {  // the square overflows; the density is 0
        ASSERT_EQ(actual, gy * below) << x;
      } else {
        ASSERT_NEAR(actual, gy * (below + bend), kError * largest + 1e-37) << x;
      }
    }
}

TEST_F(NarrowFunctors, SpecialValuesAreThoseOfFloat32) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  using narrow::catena::ops::Gelu16, narrow::catena::ops::GeluGrad16;
  EXPECT_EQ(Gelu16::apply(kInf), kInf);
  EXPECT_TRUE(std::isnan(Gelu16::apply(-kInf)));
  EXPECT_TRUE(std::isnan(Gelu16::apply(std::nanf(""))));
  EXPECT_TRUE(std::signbit(Gelu16::apply(-0.0f)));
  EXPECT_TRUE(std::isnan(GeluGrad16::apply(1, kInf)));
  EXPECT_TRUE(std::isnan(GeluGrad16::apply(1, std::nanf(""))));
}

// Those dtypes use them, others do not.
TEST_F(NarrowFunctors, ServeSixteenBitFloatsAlone) {
  for (const ElementwiseOp op : {elementwise_op("gelu"), elementwise_op("gelu_grad")}) {
    const ElementwiseInfo& row = info(op);
    for (const Dtype d : {Dtype::kFloat16, Dtype::kBFloat16})
      EXPECT_EQ(jit::functor_of(row, d), std::string(row.functor) + "16");
    for (const Dtype d : {Dtype::kFloat32, Dtype::kFloat64})
      EXPECT_EQ(jit::functor_of(row, d), row.functor);
  }
  EXPECT_EQ(jit::functor_of(info(elementwise_op("erf")), Dtype::kFloat16), "Erf");
}

}  // namespace
}  // namespace catena
