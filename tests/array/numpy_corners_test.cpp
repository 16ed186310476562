// Corner cases of NumPy that the array routines once got wrong; found by tests/oracle.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "catena/array/creation.h"
#include "catena/array/linalg.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"
#include "catena/array/reduction.h"

namespace catena {
namespace {

TEST(NumpyCorners, MeanOfNothingIsNan) {
  EXPECT_TRUE(std::isnan(mean(zeros({0})).item<double>()));
  EXPECT_TRUE(std::isnan(var(zeros({0})).item<double>()));
  const auto columns = mean(zeros({0, 2}, dtype::float32), 0).to_vector<float>();
  EXPECT_TRUE(std::isnan(columns.at(0)) && std::isnan(columns.at(1)));
  EXPECT_EQ(sum(zeros({0})).item<double>(), 0);
}

TEST(NumpyCorners, SpreadOfHalvesIsRoundedOnce) {
  // Deviations of about 30 whose squares sum beyond float16, and digits it does not have.
  const Array a = array<float>({-300, -299.75F, 300, 301.25F}).astype(dtype::float16);
  const Array wide = a.astype(dtype::float64);
  EXPECT_EQ(std::isinf(var(a).item<float>()), var(wide).item<double>() > 65520);
  EXPECT_EQ(catena::std(a).item<float>(), catena::std(wide).astype(dtype::float16).item<float>());
  const Array b = array<float>({1, 1.125F, 1.25F, 2}).astype(dtype::bfloat16);
  EXPECT_EQ(var(b).item<float>(),
            var(b.astype(dtype::float64)).astype(dtype::bfloat16).item<float>());
}

TEST(NumpyCorners, ArithmeticOfBoolIsInt8) {
  const Array t = ones({2}, dtype::bool_);
  for (const Array& a :
       {floor_divide(t, t), remainder(t, t), fmod(t, t), power(t, t), square(t), reciprocal(t)})
    EXPECT_EQ(a.dtype(), dtype::int8);
  EXPECT_THROW(positive(t), DtypeError);
  EXPECT_THROW(negative(t), DtypeError);
}

TEST(NumpyCorners, FloatFunctionsOfMixedIntegersTakeTheNarrowestLoop) {
  const Array a = ones({2}, dtype::int8), b = ones({2}, dtype::uint8), c = ones({2}, dtype::uint16);
  EXPECT_EQ(arctan2(a, b).dtype(), dtype::float16);
  EXPECT_EQ(hypot(a, c).dtype(), dtype::float32);
  EXPECT_EQ(arctan2(a, 2).dtype(), dtype::float16);
  EXPECT_EQ(arctan2(ones({2}, dtype::bool_), 2).dtype(), dtype::float64);
}

TEST(NumpyCorners, RollaxisCountsNegativeStartsFromTheEnd) {
  const Array a = zeros({2, 3, 4});
  EXPECT_EQ(rollaxis(a, 0, -1).shape(), (Shape{3, 2, 4}));
  EXPECT_EQ(rollaxis(a, 2, -3).shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(rollaxis(a, 0, 3).shape(), (Shape{3, 4, 2}));
  EXPECT_THROW(rollaxis(a, 0, 4), IndexError);
}

TEST(NumpyCorners, BatchesOfEmptyProductsAreZero) {
  const Array c = matmul(ones({3, 2, 0}), ones({1, 0, 4}));
  EXPECT_EQ(c.shape(), (Shape{3, 2, 4}));
  EXPECT_EQ(c.to_vector<double>(), std::vector<double>(24, 0));
}

TEST(NumpyCorners, ViewsOfNothingMayHaveAnyStride) {
  const Array a = zeros({0, 8}, dtype::float32)(ellipsis, Slice(none, none, 2));
  EXPECT_EQ(a.view(dtype::int16).shape(), (Shape{0, 8}));
  EXPECT_THROW(zeros({2, 8}, dtype::float32)(ellipsis, Slice(none, none, 2)).view(dtype::int16),
               ShapeError);
}

TEST(NumpyCorners, SigmoidReachesTheSmallestNumbers) {
  const float y = sigmoid(array<float>({-90.0F})).item<float>();
  EXPECT_NEAR(y, std::exp(-90.0), 4 * std::numeric_limits<float>::denorm_min());
  EXPECT_GT(y, 0.0F);
  EXPECT_EQ(sigmoid(array<float>({90.0F})).item<float>(), 1.0F);
}

}  // namespace
}  // namespace catena
