#include "catena/core/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "catena/core/scalar.h"

namespace catena {
namespace {

using D = Dtype;

TEST(Dtype, NamesReadBack) {
  EXPECT_EQ(parse_dtype("f4"), D::kFloat32);
  EXPECT_THROW(parse_dtype("complex64"), DtypeError);
}

TEST(Dtype, IsStreamedByName) {
  std::ostringstream stream;
  stream << D::kFloat32 << ' ' << dtype::bool_;
  EXPECT_EQ(stream.str(), "float32 bool");
}

struct PromotionCase {
  D a, b, result;
};

class Promotion : public ::testing::TestWithParam<PromotionCase> {};

TEST_P(Promotion, IsSymmetricAndAsNumPy) {
  const auto c = GetParam();
  EXPECT_EQ(promote(c.a, c.b), c.result);
  EXPECT_EQ(promote(c.b, c.a), c.result);
}

INSTANTIATE_TEST_SUITE_P(Table, Promotion,
                         ::testing::Values(PromotionCase{D::kBool, D::kInt8, D::kInt8},
                                           PromotionCase{D::kInt8, D::kUInt8, D::kInt16},
                                           PromotionCase{D::kInt32, D::kUInt32, D::kInt64},
                                           PromotionCase{D::kInt64, D::kUInt64, D::kFloat64},
                                           PromotionCase{D::kUInt16, D::kInt64, D::kInt64},
                                           PromotionCase{D::kInt8, D::kFloat16, D::kFloat16},
                                           PromotionCase{D::kInt16, D::kFloat16, D::kFloat32},
                                           PromotionCase{D::kInt32, D::kFloat32, D::kFloat64},
                                           PromotionCase{D::kFloat16, D::kBFloat16, D::kFloat32},
                                           PromotionCase{D::kBFloat16, D::kInt64, D::kBFloat16},
                                           PromotionCase{D::kBFloat16, D::kFloat64, D::kFloat64},
                                           PromotionCase{D::kFloat32, D::kFloat64, D::kFloat64}));

TEST(Promotion, HostScalarsAreWeak) {
  EXPECT_EQ(promote(D::kFloat16, Scalar(2.5)), D::kFloat16);
  EXPECT_EQ(promote(D::kInt8, Scalar(1)), D::kInt8);
  EXPECT_EQ(promote(D::kInt8, Scalar(1.5)), D::kFloat64);
  EXPECT_EQ(promote(D::kBool, Scalar(1)), D::kInt64);
  EXPECT_THROW(promote(D::kInt8, Scalar(200)), ValueError);
  EXPECT_THROW(promote(D::kUInt8, Scalar(-1)), ValueError);
}

TEST(Half, EveryFloat16ReadsBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = float16::to_float(static_cast<uint16_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(float16::to_float(float16::from_float(value))));
    } else {
      ASSERT_EQ(float16::from_float(value), bits) << value;
    }
  }
}

TEST(Half, RoundsToNearestEven) {
  EXPECT_EQ(float(float16(65519.0f)), 65504.0f);
  EXPECT_TRUE(std::isinf(float(float16(65520.0f))));
  EXPECT_EQ(float(float16(1.0f + 0x1p-11f)), 1.0f);              // tie to even
  EXPECT_EQ(float(float16(1.0f + 0x1.8p-10f)), 1.0f + 0x1p-9f);  // tie to even, upwards
  EXPECT_EQ(float(bfloat16(1.0f + 0x1p-8f)), 1.0f);
  // Rounded once: through float this double would tie and go down.
  EXPECT_EQ(float(float16(1.0 + 0x1p-11 + 0x1p-40)), 1.0f + 0x1p-10f);
  EXPECT_EQ(float(bfloat16(1.0 + 0x1p-8 + 0x1p-40)), 1.0f + 0x1p-7f);
}

TEST(ScalarValue, KeepsWideIntegers) {
  const uint64_t big = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(Scalar(big).to<uint64_t>(), big);
  EXPECT_EQ(Scalar(big).default_dtype(), D::kUInt64);
  EXPECT_FALSE(Scalar(big).fits(D::kInt64));
  EXPECT_THROW(Scalar(1e30).to_int64(), ValueError);
}

}  // namespace
}  // namespace catena
